"""`SnapshotPool`: members, triggers, matchmaking, seats, eviction and release."""

from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from pettingzoo import ParallelEnv
from pettingzoo.classic import rps_v2

import pz_policymap as pm
from pz_policymap.pool.matchmaking import snapshot_to_retire


def played(payoff, learner, opponent, wins, losses=0):
    """Records games between two policies."""
    for result in [1.0] * wins + [-1.0] * losses:
        payoff.record(pm.Episode(policies=[learner, opponent], returns=[result, -result]))


def pool_of(num_snapshots=0, **settings):
    """Returns a pool of one learner and its ledger, with some snapshots taken at steps 10, 20, ..."""
    options = {name: settings.pop(name) for name in ("capacity", "evict", "fixed") if name in settings}
    pool = pm.SnapshotPool([pm.PoolLearner("main", **settings)], **options)
    payoff = pm.Payoff(pool.num_policies)
    for number in range(1, num_snapshots + 1):
        pool.snapshot("main", 10 * number, payoff)
    return pool, payoff


def test_members_when_added_get_new_ids_in_order():
    pool = pm.SnapshotPool(["red", "blue"], fixed=["random"])
    first, second = pool.snapshot("blue", 5), pool.snapshot("red", 5)
    assert pool.names == ["red", "blue", "random", "blue@5", "red@5"]
    assert (
        [member.policy_id for member in pool.members] == list(range(5)) == [0, 1, 2, first.policy_id, second.policy_id]
    )
    assert [member.kind for member in pool.members] == ["learner", "learner", "fixed", "snapshot", "snapshot"]
    assert pool.active() == [3, 4]
    assert pool.active("red") == [4]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: pm.SnapshotPool([]), TypeError, "learners must be a sequence with at least one"),
        (lambda: pm.SnapshotPool("main"), TypeError, "learners must be a sequence"),
        (lambda: pm.SnapshotPool(["a", "a"]), ValueError, "names must be unique.*got 'a'"),
        (lambda: pm.SnapshotPool(["a"], fixed=[3]), TypeError, "names must be strings, got 3"),
        (lambda: pm.SnapshotPool(["fixed"]), ValueError, "names must be unique.*got 'fixed'"),
        (lambda: pm.SnapshotPool(["a"], capacity=0), ValueError, "capacity must be at least 1, got 0"),
        (lambda: pm.SnapshotPool(["a"], evict="newest"), ValueError, "evict must be.*got 'newest'"),
        (lambda: pm.PoolLearner("a", {}), ValueError, "opponents must hold at least one group"),
        (lambda: pm.PoolLearner("a", {"self": -1.0}), ValueError, "the share of opponents"),
        (lambda: pm.PoolLearner("a", {"self": 0.0}), ValueError, "opponents must have a positive share"),
        (lambda: pm.PoolLearner("a", rule="best"), ValueError, "rule must be one of.*got 'best'"),
        (lambda: pm.PoolLearner("a", every=0), ValueError, "every must be at least 1, got 0"),
        (lambda: pm.PoolLearner("a", win_rate=0.0), ValueError, "win_rate must be above 0"),
        (lambda: pm.SnapshotPool(["a"]).snapshot("b", 1), KeyError, "learner must be one of"),
        (lambda: pool_of(opponents={"ghost": 1.0}), KeyError, "got 'ghost'"),
        (lambda: pool_of(1, win_rate=0.5)[0].snapshot("main", 20), ValueError, "payoff must be given"),
        (lambda: pool_of(1, evict="weakest")[0].snapshot("main", 20), ValueError, "payoff must be given"),
        (lambda: pool_of(2)[0].mapping(pm.Payoff(2)), ValueError, "payoff must have 3 policies, got 2: call grow"),
        (lambda: pool_of(1, rule=lambda rates: [np.nan])[0].mapping(pm.Payoff(2)), ValueError, "rule must return 1"),
    ],
)
def test_pool_with_bad_argument_raises_error_that_names_it(make, error, message):
    with pytest.raises(error, match=message):
        make()


class TestTriggers:
    def test_snapshot_with_every_is_due_after_that_many_steps(self):
        pool, payoff = pool_of(every=100)
        assert [step for step in range(0, 350, 50) if pool.snapshot_due("main", step, payoff)] == [
            100,
            150,
            200,
            250,
            300,
        ]
        pool.snapshot("main", 120)
        assert not pool.snapshot_due("main", 219, payoff)
        assert pool.snapshot_due("main", 220, payoff)

    def test_win_rate_after_snapshot_counts_only_new_games(self):
        pool, payoff = pool_of(1, win_rate=0.75, min_games=8)
        played(payoff, 0, 1, wins=7)
        assert not pool.snapshot_due("main", 11, payoff)  # too few games
        played(payoff, 0, 1, wins=0, losses=2)
        assert pool.snapshot_due("main", 12, payoff)  # 7 of 9
        pool.snapshot("main", 12, payoff)
        assert payoff.num_policies == 3  # it has grown
        assert not pool.snapshot_due("main", 13, payoff)
        played(payoff, 0, 2, wins=8)
        assert pool.snapshot_due("main", 14, payoff)

    def test_win_rate_after_reset_of_another_learner_counts_only_new_games(self):
        main = pm.PoolLearner("main", {"exploiter": 1.0}, win_rate=0.7, min_games=20)
        pool, payoff = pm.SnapshotPool([main, "exploiter"]), pm.Payoff(2)
        played(payoff, 0, 1, wins=10, losses=90)
        pool.snapshot("main", 1, payoff)
        pool.snapshot("exploiter", 1, payoff, reset=True)
        played(payoff, 0, 1, wins=10, losses=9)
        assert not pool.snapshot_due("main", 2, payoff)  # too few games
        played(payoff, 0, 1, wins=10, losses=1)
        assert not pool.snapshot_due("main", 2, payoff)  # 20 of 30
        played(payoff, 0, 1, wins=10)
        assert pool.snapshot_due("main", 2, payoff)  # 30 of 40

    def test_win_rate_in_ledger_with_decay_counts_raw_games(self):
        pool, _ = pool_of(1, win_rate=0.6, min_games=30)
        payoff = pm.Payoff(2, decay=0.9)  # its decayed counts stay below 10
        played(payoff, 0, 1, wins=30)
        assert payoff.decayed.games[0, 1] < 10
        assert pool.snapshot_due("main", 20, payoff)

    def test_snapshot_with_max_steps_is_due_without_win_rate(self):
        pool, payoff = pool_of(1, win_rate=0.9, max_steps=100)
        assert not pool.snapshot_due("main", 109, payoff)
        assert pool.snapshot_due("main", 110, payoff)

    def test_snapshot_due_with_decreasing_step_raises(self):
        pool, payoff = pool_of(1, every=5)
        with pytest.raises(ValueError, match="step must be at least 10, got 9"):
            pool.snapshot_due("main", 9, payoff)


class TestMatchmaking:
    def test_shares_of_empty_groups_go_to_other_groups(self):
        pool, payoff = pool_of(2, opponents={"snapshots": 0.6, "random": 0.2, "self": 0.2}, fixed=["random"])
        assert pool.opponent_weights("main", payoff).tolist() == pytest.approx([0.2, 0.2, 0.3, 0.3])
        pool, payoff = pool_of(0, opponents={"snapshots": 0.6, "random": 0.2, "self": 0.2}, fixed=["random"])
        assert pool.opponent_weights("main", payoff).tolist() == [0.5, 0.5]
        pool, payoff = pool_of(0)
        assert pool.opponent_weights("main", payoff).tolist() == [1.0]

    def test_group_with_own_rule_follows_it(self):
        pool, payoff = pool_of(2, opponents={"snapshots": (1.0, "pfsp")})
        played(payoff, 0, 1, wins=20)
        weights = pool.opponent_weights("main", payoff)
        assert weights[1] < 0.01
        assert weights[1:].tolist() == pytest.approx(pm.pfsp(payoff.win_rates[0, 1:]).tolist())

    def test_groups_of_other_learners_hold_their_members(self):
        learners = [
            pm.PoolLearner("main", {"all snapshots": 1.0}),
            pm.PoolLearner("exploiter", {"main": 0.5, "main:snapshots": 0.5}),
        ]
        pool = pm.SnapshotPool(learners)
        pool.snapshot("main", 1), pool.snapshot("exploiter", 1)
        payoff = pm.Payoff(pool.num_policies)
        assert pool.opponent_weights("main", payoff).tolist() == [0.0, 0.0, 0.5, 0.5]
        fixed, games = pool_of(0, opponents={"fixed": 1.0}, fixed=["x", "y"])
        assert fixed.opponent_weights("main", games).tolist() == [0.0, 0.5, 0.5]
        assert pool.opponent_weights("exploiter", payoff).tolist() == [0.5, 0.0, 0.5, 0.0]

    def test_nash_rule_equals_equilibrium_of_games_between_snapshots(self):
        pytest.importorskip("scipy")
        pool, payoff = pool_of(3, opponents={"snapshots": (0.5, "nash"), "random": 0.5}, fixed=["random"])
        for winner, loser in ((2, 3), (3, 4), (4, 2), (4, 2)):  # a cycle: rock, paper, scissors
            played(payoff, winner, loser, wins=1)
        played(payoff, 0, 2, wins=9)  # games of the learner do not count
        expected = pm.nash(payoff.win_rates[2:, 2:])
        assert expected.max() - expected.min() > 0.05
        assert pool.opponent_weights("main", payoff).tolist() == pytest.approx([0.0, 0.5, *(0.5 * expected)])

    def test_nash_rule_without_scipy_raises_at_construction(self, monkeypatch):
        monkeypatch.setattr("pz_policymap.pool.learner_settings.find_spec", lambda name: None)
        with pytest.raises(ImportError, match=r"rule 'nash' needs SciPy: pip install scipy"):
            pm.PoolLearner("main", {"snapshots": (1.0, "nash")})

    @pytest.mark.parametrize("rule", ["uniform", "pfsp", "latest", "delta_uniform", "nash", lambda rates: [3.0, 1.0]])
    def test_every_rule_gives_a_group_exactly_its_share(self, rule):
        pytest.importorskip("scipy")
        opponents = {"snapshots": (0.6, rule), "random": 0.2, "self": 0.2}
        pool, payoff = pool_of(2, opponents=opponents, fixed=["random"])
        weights = pool.opponent_weights("main", payoff)
        assert weights[:2].tolist() == pytest.approx([0.2, 0.2])
        assert weights[2:].sum() == pytest.approx(0.6)

    @pytest.mark.parametrize(("evict", "expected"), [("oldest", 3), ("spread", 5), ("weakest", 4)])
    def test_eviction_by_each_rule_retires_the_expected_snapshot(self, evict, expected):
        pool = pm.SnapshotPool(["main"], fixed=["x", "y"])
        members = list(pool.members) + [pool.snapshot("main", step) for step in (0, 40, 50, 60, 100)]
        shares = np.array([0.0, 0.0, 0.0, 0.3, 0.1, 0.2, 0.2, 0.2])
        assert snapshot_to_retire(evict, members, [3, 4, 5, 6, 7], shares) == expected

    @pytest.mark.parametrize(
        ("taken", "expected"),
        [
            ([("red", 0), ("blue", 1), ("red", 100), ("blue", 2), ("red", 200)], "red@100"),
            ([("red", 0), ("blue", 1), ("red", 900), ("blue", 2), ("red", 950), ("red", 999), ("blue", 3)], "red@950"),
            ([("red", 0), ("blue", 1), ("red", 100), ("blue", 2)], "red@0"),  # no learner has three
        ],
    )
    def test_eviction_by_spread_compares_snapshots_of_the_same_learner(self, taken, expected):
        pool = pm.SnapshotPool(["red", "blue"], evict="spread")
        for learner, step in taken:
            pool.snapshot(learner, step)
        assert pool.names[snapshot_to_retire("spread", pool.members, pool.active(), np.zeros(9))] == expected


class TestSeats:
    def table(self, pool, agents, payoff, episodes=400):
        """Returns the policies of many draws, shape `(episodes, num_seats)`."""
        return pm.assignments(pool.mapping(payoff), agents, seed=0, episode=np.arange(episodes), resample_every=1)

    def test_mapping_of_two_learners_has_one_row_per_learner(self):
        pool = pm.SnapshotPool(
            ["red", "blue"], fixed=["random"], seats=lambda focal, others: pm.Focal(focal, others, rotate=False)
        )
        payoff = pm.Payoff(pool.num_policies)
        pool.snapshot("red", 1, payoff)
        seats = self.table(pool, ["a", "b"], payoff)
        assert set(map(tuple, seats.tolist())) == {(0, 3), (1, 1)}  # blue has no snapshot yet and meets itself

    def test_teams_of_learner_and_opponent_are_controlled_by_one_policy_each(self):
        pool = pm.SnapshotPool(
            [pm.PoolLearner("main", {"snapshots": 0.5, "random": 0.5})],
            fixed=["random"],
            seats=lambda learner, others: pm.Teams(pm.Focal(learner, others)),
        )
        payoff = pm.Payoff(pool.num_policies)
        pool.snapshot("main", 1, payoff)
        seats = self.table(pool, ["red_0", "red_1", "blue_0", "blue_1"], payoff)
        assert set(map(tuple, seats.tolist())) == {(0, 0, 1, 1), (1, 1, 0, 0), (0, 0, 2, 2), (2, 2, 0, 0)}

    def test_learners_of_different_roles_meet_opponents_of_the_other_role(self):
        learners = [
            pm.PoolLearner("predator", {"prey": 0.5, "prey:snapshots": 0.5}),
            pm.PoolLearner("prey", {"predator": 0.5, "predator:snapshots": 0.5}),
        ]
        seats = {
            "predator": lambda learner, others: pm.Roles({"adversary": learner, "agent": others}),
            "prey": lambda learner, others: pm.Roles({"adversary": pm.Shared(others), "agent": learner}),
        }
        pool = pm.SnapshotPool(learners, seats=seats)
        payoff = pm.Payoff(pool.num_policies)
        pool.snapshot("predator", 1, payoff), pool.snapshot("prey", 1, payoff)
        agents = ["adversary_0", "adversary_1", "agent_0"]
        table = self.table(pool, agents, payoff, 2000)
        rows, counts = np.unique(table, axis=0, return_counts=True)
        assert rows.tolist() == [[0, 0, 1], [0, 0, 3], [2, 2, 1]]
        # Both learners take half the draws, and each meets its two opponents equally often.
        np.testing.assert_allclose(counts / 2000, [0.5, 0.25, 0.25], atol=0.04)
        assert pm.wrap(Tag(), pool.last_mapping, seed=0).assigner.mapping == pool.last_mapping

    def test_seats_of_one_learner_can_be_a_dict(self):
        pool = pm.SnapshotPool(["main"], fixed=["random"], seats={"main": pm.Focal})
        assert repr(pool.last_mapping) == "Focal(Fixed(0), Weighted([1, 0]))"

    def test_seats_without_a_learner_raise_key_error(self):
        with pytest.raises(KeyError, match="blue"):
            pm.SnapshotPool(["red", "blue"], seats={"red": pm.Focal})

    def test_mapping_after_a_release_leaves_out_released_members(self):
        pool, payoff = pool_of(3)
        pool.retire(1)
        pool.mapping(payoff)
        assert [member.policy_id for member in pool.release()] == [1]
        assert repr(pool.mapping(payoff)) == "Focal(Fixed(0), Weighted([0, 0.5, 0.5], policies=[0, 2, 3]))"


class Tag(ParallelEnv):
    """Two adversaries and one agent; never stepped."""

    metadata: ClassVar = {"name": "tag_v0"}
    possible_agents: ClassVar = ["adversary_0", "adversary_1", "agent_0"]


class TestRelease:
    def test_member_in_use_is_released_after_its_last_episode(self):
        pool, payoff = pool_of(2, capacity=2, every=10)
        env = pm.wrap(rps_v2.parallel_env(), pool.mapping(payoff), resample_every=2, seed=1)
        while True:
            env.reset()
            if 1 in env.policy_ids.values():
                break
            env.set_mapping(env.assigner.mapping, now=True)
        assert not pool.snapshot_due("main", 50, payoff)  # no slot: the oldest retires
        assert pool.release([env]) == []  # the environment does not follow the new mapping yet
        env.set_mapping(pool.mapping(payoff))
        assert pool.release([env]) == []  # the draw in force still holds policy 1
        env.reset()
        env.set_mapping(env.assigner.mapping, now=True)
        assert pool.release([env]) == []
        env.reset()
        assert [member.name for member in pool.release([env])] == ["main@10"]
        assert pool.release([env]) == []
        assert pool.snapshot_due("main", 50, payoff)
        assert pool.snapshot("main", 50).policy_id == 3  # a new id in the old slot
        assert pool.slots == {2: 1, 3: 0}

    def test_environment_that_lacks_the_latest_mapping_uses_every_member(self):
        pool, payoff = pool_of(2)
        env = pm.wrap(rps_v2.parallel_env(), pool.mapping(payoff), seed=0)  # before its first reset
        pool.retire(1)
        mapping = pool.mapping(payoff)
        assert pool.release([env]) == []  # its next draw may choose the member
        env.set_mapping(mapping)
        assert [member.policy_id for member in pool.release([env])] == [1]

    def test_member_of_forced_matchup_is_released_after_it(self):
        pool, payoff = pool_of(2, capacity=2)
        env = pm.wrap(rps_v2.parallel_env(), 3, seed=0)
        pool.retire(1)
        env.set_mapping(pool.mapping(payoff), now=True)
        env.reset(options={"policy_ids": {"player_0": 1}})
        assert pool.release([env]) == []
        env.reset()
        assert [member.policy_id for member in pool.release([env])] == [1]

    def test_member_that_late_agents_may_get_is_released_after_the_next_draw(self):
        pool = pm.SnapshotPool(["main"], seats=lambda learner, others: pm.Focal(learner, others, rotate=False))
        payoff = pm.Payoff(1)
        pool.snapshot("main", 10, payoff), pool.snapshot("main", 20, payoff)
        assigner = pm.PolicyAssigner(pool.mapping(payoff), ["a", "b"], seed=0, resample_every=1)
        while 1 in assigner.policy_ids or -1 in assigner.policy_ids:
            assigner.begin_episodes()
        assert assigner.policies_in_use == {0, 2}
        pool.retire(1)
        assigner.set_mapping(pool.mapping(payoff))
        assert pool.release(in_use=assigner.policies_in_use) == []
        assigner.add_agents([f"late{number}" for number in range(9)])
        assert 1 in assigner.policy_ids  # they follow the mapping of the draw
        assigner.begin_episodes()
        assert [member.policy_id for member in pool.release(in_use=assigner.policies_in_use)] == [1]

    def test_members_that_remote_workers_use_are_not_released(self):
        pool, payoff = pool_of(3)
        pool.retire(1), pool.retire(2)
        pool.mapping(payoff)
        assert [member.policy_id for member in pool.release(in_use=[2, 0])] == [1]
        assert [member.policy_id for member in pool.release(in_use=[0])] == [2]

    def test_snapshot_without_free_slot_raises(self):
        pool, _ = pool_of(1, capacity=1)
        with pytest.raises(ValueError, match=r"capacity must leave a free slot, got 1: release members \[1\] first"):
            pool.snapshot("main", 20)
        assert pool.active() == []  # the snapshot retired, so that a slot becomes free
        pool.mapping(pm.Payoff(2))
        assert [member.policy_id for member in pool.release()] == [1]
        assert pool.snapshot("main", 20).policy_id == 2

    def test_environment_before_first_reset_uses_no_member(self):
        pool, payoff = pool_of(2)
        pool.retire(1)
        env = pm.wrap(rps_v2.parallel_env(), pool.mapping(payoff), seed=0)
        assert [member.policy_id for member in pool.release([env])] == [1]

    def test_vector_environment_uses_members_of_all_rows(self):
        pool = pm.SnapshotPool(["main"], seats=lambda learner, others: others)  # environments with a single seat
        payoff = pm.Payoff(1)
        pool.snapshot("main", 10, payoff), pool.snapshot("main", 20, payoff)
        env = pm.wrap(gymnasium.make_vec("CartPole-v1", num_envs=2), pm.Fixed(1), seed=0)
        env.reset()
        pool.retire(1)
        env.set_mapping(pool.mapping(payoff), now=True)
        assert pool.release([env]) == []
        env.reset()
        assert [member.policy_id for member in pool.release([env])] == [1]

    def test_eviction_of_weakest_retires_the_beaten_snapshot(self):
        pool, payoff = pool_of(3, capacity=3, evict="weakest", rule="pfsp", every=1)
        played(payoff, 0, 2, wins=30)
        assert not pool.snapshot_due("main", 100, payoff)
        assert pool.active() == [1, 3]

    def test_retire_of_a_learner_raises(self):
        pool, _ = pool_of(1)
        with pytest.raises(ValueError, match=r"policy_id must be an active snapshot, one of \[1\], got 0"):
            pool.retire(0)


def test_repr_of_pool_shows_learners_and_slots():
    assert repr(pool_of(2, capacity=4)[0]) == "<SnapshotPool: main; 2 snapshots in 4 slots>"
