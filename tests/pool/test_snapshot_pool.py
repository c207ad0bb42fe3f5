"""`SnapshotPool`: members, triggers, matchmaking, eviction, release and resumption."""

import json

import gymnasium
import numpy as np
import pytest
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
    for number in range(1, num_snapshots + 1):
        pool.snapshot("main", 10 * number)
    return pool, pm.Payoff(pool.num_policies)


def test_members_have_ids_in_order_and_snapshots_get_new_ones():
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
        (lambda: pool_of(opponents={"ghost": 1.0})[0].mapping(pm.Payoff(1)), KeyError, "got 'ghost'"),
        (lambda: pool_of(2)[0].mapping(pm.Payoff(2)), ValueError, "payoff must have 3 policies, got 2"),
        (lambda: pool_of(1, rule=lambda rates: [np.nan])[0].mapping(pm.Payoff(2)), ValueError, "rule must return 1"),
    ],
)
def test_bad_arguments_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


class TestTriggers:
    def test_every_so_many_steps(self):
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

    def test_a_win_rate_counts_only_games_since_the_last_snapshot(self):
        pool, payoff = pool_of(1, win_rate=0.75, min_games=8)
        played(payoff, 0, 1, wins=7)
        assert not pool.snapshot_due("main", 11, payoff)  # too few games
        played(payoff, 0, 1, wins=0, losses=2)
        assert pool.snapshot_due("main", 12, payoff)  # 7 of 9
        pool.snapshot("main", 12, payoff)
        payoff.grow(pool.num_policies)
        assert not pool.snapshot_due("main", 13, payoff)
        played(payoff, 0, 2, wins=8)
        assert pool.snapshot_due("main", 14, payoff)

    def test_raw_games_count_even_in_a_ledger_with_decay(self):
        pool, _ = pool_of(1, win_rate=0.6, min_games=30)
        payoff = pm.Payoff(2, decay=0.9)  # its decayed counts stay below 10
        played(payoff, 0, 1, wins=30)
        assert payoff.decayed.games[0, 1] < 10
        assert pool.snapshot_due("main", 20, payoff)

    def test_max_steps_bounds_the_wait_for_a_win_rate(self):
        pool, payoff = pool_of(1, win_rate=0.9, max_steps=100)
        assert not pool.snapshot_due("main", 109, payoff)
        assert pool.snapshot_due("main", 110, payoff)

    def test_a_step_that_decreases_is_refused(self):
        pool, payoff = pool_of(1, every=5)
        with pytest.raises(ValueError, match="step must be at least 10, got 9"):
            pool.snapshot_due("main", 9, payoff)


class TestMatchmaking:
    def test_shares_of_groups_and_of_empty_ones(self):
        pool, payoff = pool_of(2, opponents={"snapshots": 0.6, "random": 0.2, "self": 0.2}, fixed=["random"])
        assert pool.opponent_weights("main", payoff).tolist() == pytest.approx([0.2, 0.2, 0.3, 0.3])
        pool, payoff = pool_of(0, opponents={"snapshots": 0.6, "random": 0.2, "self": 0.2}, fixed=["random"])
        assert pool.opponent_weights("main", payoff).tolist() == [0.5, 0.5]
        pool, payoff = pool_of(0)
        assert pool.opponent_weights("main", payoff).tolist() == [1.0]

    def test_a_group_can_have_a_rule_of_its_own(self):
        pool, payoff = pool_of(2, opponents={"snapshots": (1.0, "pfsp")})
        played(payoff, 0, 1, wins=20)
        weights = pool.opponent_weights("main", payoff)
        assert weights[1] < 0.01
        assert weights[1:].tolist() == pytest.approx(pm.pfsp(payoff.win_rates[0, 1:]).tolist())

    def test_groups_name_other_learners_and_their_snapshots(self):
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

    def test_the_mapping_is_of_numbers_alone_and_a_row_per_learner(self):
        pool = pm.SnapshotPool(["red", "blue"], fixed=["random"])
        pool.snapshot("red", 1)
        mapping = pool.mapping(
            pm.Payoff(pool.num_policies), seats=lambda focal, others: pm.Focal(focal, others, rotate=False)
        )
        table = pm.assignments(mapping, ["a", "b"], seed=0, episode=np.arange(200), resample_every=1)
        assert set(map(tuple, table.tolist())) == {(0, 3), (1, 1)}  # blue has no snapshot yet and meets itself

    @pytest.mark.parametrize(("evict", "expected"), [("oldest", 3), ("spread", 5), ("weakest", 4)])
    def test_the_snapshot_that_retires(self, evict, expected):
        members = [pm.SnapshotPool(["main"]).members[0]] * 3
        pool = pm.SnapshotPool(["main"], fixed=["x", "y"])
        members = list(pool.members) + [pool.snapshot("main", step) for step in (0, 40, 50, 60, 100)]
        shares = np.array([0.0, 0.0, 0.0, 0.3, 0.1, 0.2, 0.2, 0.2])
        assert snapshot_to_retire(evict, members, [3, 4, 5, 6, 7], shares) == expected


class TestRelease:
    def test_a_member_is_released_only_when_no_environment_uses_it(self):
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

    def test_a_forced_matchup_keeps_a_member(self):
        pool, payoff = pool_of(2, capacity=2)
        env = pm.wrap(rps_v2.parallel_env(), 3, seed=0)
        pool.retire(1)
        env.set_mapping(pool.mapping(payoff), now=True)
        env.reset(options={"policy_ids": {"player_0": 1}})
        assert pool.release([env]) == []
        env.reset()
        assert [member.policy_id for member in pool.release([env])] == [1]

    def test_ids_of_remote_workers_keep_members(self):
        pool, payoff = pool_of(3)
        pool.retire(1), pool.retire(2)
        pool.mapping(payoff)
        assert [member.policy_id for member in pool.release(in_use=[2, 0])] == [1]
        assert [member.policy_id for member in pool.release(in_use=[0])] == [2]

    def test_a_snapshot_without_a_free_slot_is_refused(self):
        pool, _ = pool_of(1, capacity=1)
        with pytest.raises(ValueError, match="capacity must leave a free slot, got 1 slots"):
            pool.snapshot("main", 20)

    def test_an_environment_before_its_first_reset_uses_nothing(self):
        pool, payoff = pool_of(2)
        pool.retire(1)
        env = pm.wrap(rps_v2.parallel_env(), pool.mapping(payoff), seed=0)
        assert [member.policy_id for member in pool.release([env])] == [1]

    def test_a_vector_environment_keeps_the_members_of_all_its_rows(self):
        pool, payoff = pool_of(2)
        env = pm.wrap(gymnasium.make_vec("CartPole-v1", num_envs=2), pm.Fixed(1), seed=0)
        env.reset()
        pool.retire(1)
        env.set_mapping(pool.mapping(payoff, seats=lambda focal, others: others), now=True)
        assert pool.release([env]) == []
        env.reset()
        assert [member.policy_id for member in pool.release([env])] == [1]

    def test_the_weakest_retires(self):
        pool, payoff = pool_of(3, capacity=3, evict="weakest", rule="pfsp", every=1)
        played(payoff, 0, 2, wins=30)
        assert not pool.snapshot_due("main", 100, payoff)
        assert pool.active() == [1, 3]

    def test_only_active_snapshots_retire(self):
        pool, _ = pool_of(1)
        with pytest.raises(ValueError, match=r"policy_id must be an active snapshot, one of \[1\], got 0"):
            pool.retire(0)


class TestState:
    def test_a_resumed_pool_goes_on_as_if_it_had_not_stopped(self, tmp_path):
        def run(pool, payoff, env, steps):
            met = []
            for step in steps:
                payoff.grow(pool.num_policies)
                if pool.snapshot_due("main", step, payoff):
                    pool.snapshot("main", step, payoff)
                    payoff.grow(pool.num_policies)
                env.set_mapping(pool.mapping(payoff))
                pool.release([env])
                env.reset()
                ids = list(env.policy_ids.values())
                met.append(ids)
                while env.agents:
                    env.step(dict.fromkeys(env.agents, 0))
                payoff.record(pm.Episode(policies=ids, returns=[float(step % 3), 1.0]))
            return met

        def parts():
            pool, payoff = pool_of(
                opponents={"snapshots": (0.8, "pfsp"), "random": 0.2}, every=3, capacity=3, fixed=["random"]
            )
            return pool, payoff, pm.wrap(rps_v2.parallel_env(), 2, resample_every=2, seed=5)

        expected = run(*parts(), range(60))
        pool, payoff, env = parts()
        met = run(pool, payoff, env, range(31))
        path = tmp_path / "run.npz"
        pm.save(path, pool=pool, payoff=payoff, assigner=env.assigner)
        pool, payoff, env = parts()
        state = pm.load(path)
        pool.load_state_dict(state["pool"]), payoff.load_state_dict(state["payoff"])
        env.set_mapping(pool.mapping(payoff))
        env.assigner.load_state_dict(state["assigner"] | {"mapping": env.assigner.state_dict()["mapping"]})
        assert met + run(pool, payoff, env, range(31, 60)) == expected
        assert len({tuple(ids) for ids in expected}) > 5

    def test_a_state_is_plain_and_of_this_pool(self):
        pool, _ = pool_of(2)
        state = json.loads(json.dumps(pool.state_dict()))
        other, _ = pool_of(0)
        other.load_state_dict(state)
        assert other.members == pool.members
        assert other.slots == pool.slots
        with pytest.raises(ValueError, match="state does not fit"):
            pm.SnapshotPool(["red"]).load_state_dict(state)
        with pytest.raises(ValueError, match="state must be of version 1"):
            other.load_state_dict({**state, "version": 2})


def test_the_repr_shows_learners_and_slots():
    assert repr(pool_of(2, capacity=4)[0]) == "<SnapshotPool: main; 2 snapshots in 4 slots>"
