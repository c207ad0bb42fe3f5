"""The assigner: cadence, purity, late agents, mappings that change, and invalid arguments."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pz_policymap as pm
from pz_policymap import ByEnvIndex, Draw, Fixed, FromFunction, PolicyAssigner, PolicyMapping, Shared, Uniform, Weighted
from pz_policymap.cadence import Cadence

AGENTS = ["a", "b", "c"]


def assigner_of(mapping=8, agents=AGENTS, **settings):
    return PolicyAssigner(mapping, agents, **{"seed": 0, **settings})


class Mine(PolicyMapping):
    """A mapping that forwards to another one."""

    def __init__(self, inner):
        self.inner = inner

    @property
    def children(self):
        return (self.inner,)

    def assign(self, draw):
        return self.inner.assign(draw)


def played(assigner, episodes):
    return [assigner.begin_episodes()[0].tolist() for _ in range(episodes)]


def test_assignment_before_the_first_episode_is_empty():
    assigner = assigner_of(num_envs=2)
    assert assigner.policy_ids.tolist() == [[-1] * 3] * 2
    assert (assigner.episode.tolist(), assigner.block.tolist(), assigner.draw_episode.tolist()) == ([-1, -1],) * 3
    assert assigner.assignment() == {}


def test_draws_are_made_every_resample_every_episodes_and_held_between():
    assigner = assigner_of(resample_every=4)
    episodes = played(assigner, 12)
    assert episodes == [episodes[0]] * 4 + [episodes[4]] * 4 + [episodes[8]] * 4
    assert len({tuple(e) for e in episodes}) == 3
    assert (assigner.episode[0], assigner.draw_episode[0], assigner.block[0]) == (11, 8, 2)


def test_warmup_episodes_each_resample():
    episodes = played(assigner_of(1000, resample_every=5, warmup_episodes=3), 11)
    assert [i for i in range(1, 11) if episodes[i] != episodes[i - 1]] == [1, 2, 5, 10]


def test_assignment_equals_the_draw_computed_outside():
    assigner = assigner_of(resample_every=4, env_index=5, seed=9)
    episodes = played(assigner, 9)
    for episode in (0, 4, 8):
        anyone = Uniform(8).assign(Draw.at(9, AGENTS, [5], [episode], resample_every=4))
        assert episodes[episode] == anyone[0].tolist()


@given(st.lists(st.lists(st.integers(0, 5), unique=True), max_size=30), st.integers(1, 4), st.integers(0, 3))
def test_rows_in_any_order_get_the_assignment_of_each_alone(calls, every, warmup):
    together = assigner_of(num_envs=6, resample_every=every, warmup_episodes=warmup, env_index=10)
    alone = [assigner_of(resample_every=every, warmup_episodes=warmup, env_index=10 + row) for row in range(6)]
    for rows in calls:
        before = together.policy_ids
        kept = before.copy()
        ids = together.begin_episodes(rows)
        np.testing.assert_array_equal(before, kept)
        for row in rows:
            np.testing.assert_array_equal(ids[row], alone[row].begin_episodes()[0])
        for row in set(range(6)) - set(rows):
            np.testing.assert_array_equal(ids[row], before[row])


def test_rows_as_a_mask_and_as_numbers_give_equal_assignments():
    by_mask, by_number = assigner_of(num_envs=5, resample_every=1), assigner_of(num_envs=5, resample_every=1)
    for rows in ([0, 3], [1], [], [4, 0, 2]):
        mask = np.isin(np.arange(5), rows)
        np.testing.assert_array_equal(by_mask.begin_episodes(mask), by_number.begin_episodes(rows))
    assert by_mask.episode.tolist() == [1, 0, 0, 0, 0]


def test_environments_beyond_one_chunk_get_the_same_bits():
    many = assigner_of(num_envs=40_000).begin_episodes()
    for row in (0, 16_383, 16_384, 39_999):
        np.testing.assert_array_equal(many[row], assigner_of(env_index=row).begin_episodes()[0])


def test_policy_ids_are_read_only_and_replaced_at_a_draw():
    assigner = assigner_of(resample_every=2)
    first = assigner.begin_episodes()
    assert assigner.begin_episodes() is first
    assert assigner.begin_episodes() is not first
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 3


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_policy_ids_of_a_copied_assigner_are_read_only(copied):
    assigner = assigner_of()
    assigner.begin_episodes()
    other = copied(assigner)
    assert not other.policy_ids.flags.writeable
    np.testing.assert_array_equal(other.policy_ids, assigner.policy_ids)


def test_returned_counters_are_copies():
    assigner = assigner_of()
    assigner.begin_episodes()
    assigner.episode[0] = 77
    assigner.draw_episode[0] = 77
    assert (assigner.episode[0], assigner.draw_episode[0]) == (0, 0)


def test_draw_is_held_for_ten_episodes_by_default():
    assert PolicyAssigner(2, AGENTS).cadence == Cadence(resample_every=10, warmup_episodes=0)


class TestSeeds:
    def test_the_same_seed_replays_the_same_assignments_from_episode_0(self):
        assigner = assigner_of(seed=None, resample_every=1)
        first = [assigner.begin_episodes(seed=3).tolist(), *[assigner.begin_episodes().tolist() for _ in range(4)]]
        again = [assigner.begin_episodes(seed=3).tolist(), *[assigner.begin_episodes().tolist() for _ in range(4)]]
        other = assigner.begin_episodes(seed=4).tolist()
        assert first == again
        assert other != first[0]
        assert assigner.episode[0] == 0

    def test_pinned_seed_ignores_later_seeds(self):
        assigner, plain = assigner_of(resample_every=1), assigner_of(resample_every=1)
        with_seeds = [assigner.begin_episodes(seed=s).tolist() for s in (5, 5, 6)]
        assert with_seeds == [plain.begin_episodes().tolist() for _ in range(3)]
        assert assigner.seed == 0

    def test_assigners_without_a_seed_take_entropy_at_the_first_episode(self):
        first, second = assigner_of(2**31 - 1, seed=None), assigner_of(2**31 - 1, seed=None)
        assert first.seed is None
        assert first.begin_episodes().tolist() != second.begin_episodes().tolist()
        assert first.seed != second.seed
        kept = first.seed
        first.begin_episodes()
        assert first.seed == kept

    def test_seed_of_several_integers_is_one_seed(self):
        assert assigner_of(seed=[1, 2]).seed == (1, 2)
        assert assigner_of(seed=np.array([1, 2])).seed == (1, 2)
        assert assigner_of(seed=np.array(3)).seed == 3
        ids = [assigner_of(2**31 - 1, seed=s).begin_episodes().tolist() for s in ([1, 2], [2, 1], 1, [1])]
        assert ids[2] == ids[3]
        assert ids[0] != ids[1] != ids[2]

    def test_seed_with_rows_raises(self):
        with pytest.raises(ValueError, match="^rows must be None with a seed"):
            assigner_of(seed=None, num_envs=2).begin_episodes([0], seed=1)

    @pytest.mark.parametrize("seed", [-1, 1.5, "1", True, [], [None], np.array(1.5), np.array([0.5]), [[1, 2]], {1, 2}])
    def test_invalid_seed_raises(self, seed):
        with pytest.raises((TypeError, ValueError), match="^seed"):
            assigner_of(seed=seed)
        assigner = assigner_of(seed=None)
        with pytest.raises((TypeError, ValueError), match="^seed"):
            assigner.begin_episodes(seed=seed)
        assert assigner.episode[0] == -1


class TestLateAgents:
    def dynamic(self, mapping=1000, **settings):
        return assigner_of(mapping, agents=None, **settings)

    def test_late_agent_gets_its_policy_from_the_start(self):
        late, early = self.dynamic(), self.dynamic()
        late.begin_episodes(agents=["a", "b"])
        late.add_agents(["c"])
        early.begin_episodes(agents=["a", "b", "c"])
        assert late.assignment() == early.assignment()

    def test_late_agent_keeps_its_policy_and_those_of_others(self):
        assigner = self.dynamic(resample_every=3)
        assigner.begin_episodes(agents=["a"])
        before = assigner.assignment()
        assigner.add_agents(["b", "a"])
        with_b = assigner.assignment()
        assert with_b["a"] == before["a"]
        assigner.begin_episodes(agents=["b", "c"])
        assert {agent: assigner.assignment()[agent] for agent in "ab"} == with_b
        assigner.begin_episodes(agents=["a"])
        assigner.begin_episodes(agents=["c", "b"])
        assert list(assigner.assignment()) == ["c", "b"]  # a new draw has the seats of its own episode

    def test_late_agent_under_shared_gets_the_shared_policy(self):
        for rule in (Uniform(1000, mix=False), Shared(Uniform(1000))):
            assigner = self.dynamic(rule)
            assigner.begin_episodes(agents=["a"])
            assigner.add_agents(["b", "c"])
            assert len(set(assigner.assignment().values())) == 1

    def test_late_agent_is_drawn_with_the_weights_of_the_draw(self):
        weights = [1, 0]
        assigner = self.dynamic(Weighted(lambda: weights))
        assigner.begin_episodes(agents=["a"])
        weights[:] = [0, 1]
        assigner.add_agents(["b"])
        assert assigner.assignment() == {"a": 0, "b": 0}

    def test_agent_missing_from_possible_agents_joins_as_a_late_agent(self):
        assigner, plain = assigner_of(1000, resample_every=2), assigner_of(1000, [*AGENTS, "d"], resample_every=2)
        assigner.begin_episodes(agents=["a", "d"])
        assert assigner.assignment() == dict(zip([*AGENTS, "d"], plain.begin_episodes()[0].tolist(), strict=True))
        assigner.begin_episodes()
        assert list(assigner.assignment()) == [*AGENTS, "d"]
        assigner.begin_episodes()
        assert list(assigner.assignment()) == AGENTS

    def test_mapping_that_needs_all_seats_raises_at_the_first_episode(self):
        class Ranked(PolicyMapping):
            needs_all_seats = True

            def assign(self, draw):
                return np.tile(np.arange(draw.num_seats), (draw.num_envs, 1))

        with pytest.raises(ValueError, match="needs to know all seats"):
            self.dynamic(Ranked()).begin_episodes(agents=["a"])
        assigner = assigner_of(Ranked())
        with pytest.raises(ValueError, match=r"needs to know all seats.*\['d'\]"):
            assigner.begin_episodes(agents=["d"])
        assert assigner.episode[0] == -1
        assert assigner.assignment() == {}

    def test_late_agent_without_a_fixed_policy_raises(self):
        assigner = self.dynamic(Fixed({"a": 1}))
        assigner.begin_episodes(agents=["a"])
        with pytest.raises(ValueError, match="no policy for 'b'"):
            assigner.add_agents(["b"])
        assert assigner.assignment() == {"a": 1}

    def test_episode_without_agents_raises_if_they_are_unknown(self):
        with pytest.raises(
            ValueError, match="^agents must be given in every episode if they were not at construction, got None$"
        ):
            self.dynamic().begin_episodes()
        with pytest.raises(ValueError, match="agents cannot join before the first episode"):
            self.dynamic(seed=None).add_agents(["a"])

    def test_late_agents_in_several_environments_raise(self):
        assigner = assigner_of(num_envs=2)
        assigner.begin_episodes()
        with pytest.raises(ValueError, match=r"the same in all environments, got \['d'\]"):
            assigner.add_agents(["d"])

    @pytest.mark.parametrize("rows", [[0], [True], None])
    def test_rows_and_agents_may_be_given_together(self, rows):
        assigner, plain = self.dynamic(resample_every=1), self.dynamic(resample_every=1)
        for agents in (["a"], ["a", "b", "c"], ["c"]):
            assigner.begin_episodes(rows, agents=agents)
            plain.begin_episodes(agents=agents)
            assert assigner.assignment() == plain.assignment()
            assert list(assigner.assignment()) == agents


class TestMappingsThatChange:
    def test_new_mapping_takes_effect_at_the_next_draw(self):
        assigner = assigner_of(Fixed(1), resample_every=3)
        assigner.begin_episodes()
        assigner.set_mapping(Fixed(2))
        assert played(assigner, 4) == [[1] * 3, [1] * 3, [2] * 3, [2] * 3]

    def test_set_mapping_now_resamples_once_and_keeps_the_cadence(self):
        assigner = assigner_of(Fixed(1), resample_every=3)
        assigner.begin_episodes()
        assigner.set_mapping(Uniform(1000), now=True)
        assert assigner.policy_ids.tolist() == [[1] * 3]
        episodes = played(assigner, 4)
        assert episodes[0] == Uniform(1000).assign(Draw.at(0, AGENTS, [0], [1]))[0].tolist()
        assert episodes[1] == episodes[0]
        assert episodes[2] == episodes[3] != episodes[0]

    def test_set_mapping_now_resamples_every_environment(self):
        assigner = assigner_of(Fixed(1), num_envs=2, resample_every=5)
        assigner.begin_episodes()
        assigner.set_mapping(Fixed(2), now=True)
        assert assigner.begin_episodes([0]).tolist() == [[2] * 3, [1] * 3]
        assert assigner.begin_episodes([0, 1]).tolist() == [[2] * 3] * 2

    def test_invalid_new_mapping_leaves_the_old_one(self):
        assigner = assigner_of(Fixed(1))
        for bad in (0, None, Uniform(2, replace=False), ByEnvIndex(2)):
            with pytest.raises((TypeError, ValueError)):
                assigner.set_mapping(bad, now=True)
        assert assigner.mapping == Fixed(1)
        assert played(assigner, 2) == [[1] * 3] * 2

    def test_weights_callable_is_called_once_per_draw(self):
        asked = []
        assigner = assigner_of(Weighted(lambda: asked.append(1) or [1, 1]), num_envs=40_000, resample_every=2)
        for _ in range(4):
            assigner.begin_episodes()
        assert len(asked) == 2


class TestFaults:
    @pytest.mark.parametrize("row", [-1, 3, 0.0])
    def test_assignment_of_a_missing_row_raises(self, row):
        with pytest.raises((TypeError, ValueError), match="row must be"):
            assigner_of(num_envs=3).assignment(row)

    def test_user_mapping_checks_its_children(self):
        with pytest.raises(ValueError, match="^policy must hold every agent, got no policy for 'b'"):
            Mine(Fixed({"a": 0})).check(("a", "b"))

    def test_weights_in_a_plain_attribute_of_a_mapping_are_bound(self):
        weights = [1, 0]
        assigner = assigner_of(Mine(Weighted(lambda: weights)))
        assigner.begin_episodes()
        weights[:] = [0, 1]
        assigner.add_agents(["late"])
        assert assigner.policy_ids.tolist() == [[0, 0, 0, 0]]
        assert assigner.begin_episodes(seed=1) is assigner.policy_ids

    @pytest.mark.parametrize("held", [lambda rule: [rule], lambda rule: (rule,), lambda rule: {"x": rule}])
    def test_weights_in_a_container_of_a_mapping_are_bound(self, held):
        class Holder(PolicyMapping):
            def __init__(self, held):
                self.held = held

            @property
            def children(self):
                return tuple(self.held.values() if isinstance(self.held, dict) else self.held)

            def assign(self, draw):
                return self.children[0].assign(draw)

        weights = [1, 0]
        rule = Holder(held(Weighted(lambda: weights)))
        assert rule.reads_weights
        bound = rule.bind(lambda function: list(function()))
        weights[:] = [0, 1]
        assert type(bound.held) is type(rule.held)
        assert not bound.reads_weights
        assert bound.assign(Draw.at(0, ["a", "b"], [0], [0])).tolist() == [[0, 0]]

    def test_user_mapping_with_its_own_bind_keeps_the_answers_of_the_draw(self):
        class First(PolicyMapping):
            def __init__(self, choose):
                self.choose = choose

            def bind(self, ask):
                return First(ask(self.choose))

            def assign(self, draw):
                return np.full((draw.num_envs, draw.num_seats), self.choose)

        answers = [3]
        assert not Uniform(4).reads_weights
        assigner = assigner_of(First(lambda: answers[0]))
        assigner.begin_episodes()
        answers[:] = [5]
        assigner.add_agents(["late"])
        assert assigner.policy_ids.tolist() == [[3, 3, 3, 3]]
        assert assigner.state_dict()["draw"]["weights"] == [3]

    def test_weights_out_of_reach_of_the_default_bind_raise(self):
        class Hidden(Mine):
            def __init__(self, inner):
                self.make = lambda: inner

            @property
            def children(self):
                return (self.make(),)

        assigner_of(Hidden(Uniform(4)))
        with pytest.raises(TypeError, match="Hidden must define bind, because its child Weighted.* reads weights"):
            assigner_of(Hidden(Weighted(lambda: [1, 1]))).begin_episodes()

    def test_bind_drops_what_was_computed_from_the_old_children(self):
        rule = pm.Focal(Uniform(2), Weighted(lambda: [1, 1, 1]))
        assert rule.num_policies is None
        assert rule.bind(lambda function: function()).num_policies == 3

    def test_mapping_that_raises_changes_nothing_and_is_called_again(self):
        calls = []

        def fail_at_third(agents, draw):
            calls.append(draw.episode)
            if len(calls) == 3:
                raise KeyError("no such partner")
            return dict.fromkeys(agents, len(calls))

        assigner = assigner_of(fail_at_third, resample_every=1, env_index=4)
        assert played(assigner, 2) == [[1] * 3, [2] * 3]
        before = assigner.state_dict()
        with pytest.raises(
            ValueError, match="FromFunction.*environment 4, episode 2: KeyError.*no such partner"
        ) as raised:
            assigner.begin_episodes()
        assert isinstance(raised.value.__cause__, KeyError)
        assert assigner.state_dict() == before
        assert played(assigner, 1) == [[4] * 3]
        assert calls == [0, 1, 2, 2]

    def test_failed_first_episode_takes_no_seed(self):
        assigner = assigner_of(lambda agents, draw: 1 / 0, seed=None)
        with pytest.raises(ValueError, match="ZeroDivisionError"):
            assigner.begin_episodes(seed=3)
        assert (assigner.seed, assigner.episode[0]) == (None, -1)

    @pytest.mark.parametrize("bad", [[0.5, float("nan")], [0, 0], [-1, 1], "x", []])
    def test_invalid_weights_at_a_draw_raise_and_leave_the_old_assignment(self, bad):
        weights = [[0.0, 1.0], bad, [1.0, 0.0]]
        assigner = assigner_of(Shared(Weighted(lambda: weights.pop(0))), resample_every=1)
        assigner.begin_episodes()
        with pytest.raises((TypeError, ValueError), match="Shared.*episode 1: weights must"):
            assigner.begin_episodes()
        assert assigner.policy_ids.tolist() == [[1] * 3]
        assert assigner.begin_episodes().tolist() == [[0] * 3]

    def test_weights_callable_of_the_wrong_length_raises(self):
        with pytest.raises(ValueError, match="weights must be 3 numbers, one per policy, got 2"):
            assigner_of(Weighted(lambda: [1, 2], policies=3)).begin_episodes()

    @pytest.mark.parametrize(
        ("answer", "error", "message"),
        [
            (lambda n, s: np.zeros((n, s)), TypeError, r"integers, got .*0.0.* for agent 'a'"),
            (lambda n, s: np.ones((n, s), bool), TypeError, "integers"),
            (lambda n, s: np.full((n, s), 4), ValueError, "policies from 0 to 3, got 4 for agent 'a' of environment 7"),
            (lambda n, s: np.full((n, s), [0, -1, 0]), ValueError, "got -1 for agent 'b' of environment 7"),
            (lambda n, s: np.full((n, s), [0, 0, 300], np.uint16), ValueError, "got 300 for agent 'c'"),
            (lambda n, s: np.zeros((n, s - 1), int), ValueError, "nothing for agent 'c'"),
            (lambda n, s: np.zeros((n, s + 1), int), ValueError, r"got \(1, 4\)$"),
            (lambda n, s: np.zeros((n + 1, s), int), ValueError, r"got \(2, 3\)$"),
            (lambda n, s: np.zeros(s, int), ValueError, r"got \(3,\)$"),
            (lambda n, s: np.array([[0.5, 1.5, 2.5]]), TypeError, r"integers, got .*0\.5.* for agent 'a'"),
            (lambda n, s: None, ValueError, "shape"),
        ],
    )
    def test_invalid_policies_of_a_mapping_raise_an_error_that_names_mapping_and_agent(self, answer, error, message):
        class Mine(PolicyMapping):
            num_policies = 4

            def assign(self, draw):
                return answer(draw.num_envs, draw.num_seats)

        assigner = assigner_of(Mine(), env_index=7)
        with pytest.raises(error, match=f"Mine.*environment 7, episode 0.*{message}"):
            assigner.begin_episodes()
        assert assigner.episode[0] == -1

    def test_policy_beyond_32_bits_raises_if_the_population_is_unknown(self):
        with pytest.raises(ValueError, match="from 0 to 2147483647"):
            assigner_of(lambda agents, draw: dict.fromkeys(agents, 2**31)).begin_episodes()

    def test_policy_beyond_32_bits_raises_whatever_the_population(self):
        rule = lambda agents, draw: dict.fromkeys(agents, 2**32 + 5)  # noqa: E731
        with pytest.raises(ValueError, match="failed at the draw"):
            assigner_of(FromFunction(rule, num_policies=2**40)).begin_episodes()

    def test_array_that_a_mapping_keeps_is_copied(self):
        table = np.zeros((1, 3), np.int32)

        class Table(PolicyMapping):
            def assign(self, draw):
                return table

        assigner = assigner_of(Table())
        assigner.begin_episodes()
        table[:] = 5
        assert assigner.policy_ids.tolist() == [[0] * 3]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"agents": []}, ValueError, "agents must hold at least one agent, got none$"),
        ({"agents": ["a", "a"]}, ValueError, "agents must be distinct"),
        ({"agents": "abc"}, TypeError, "agents must be a sequence"),
        ({"agents": {"a", "b"}}, TypeError, "agents must be a sequence, got {"),
        ({"agents": {"a": 0}}, TypeError, "agents must be a sequence, got {'a': 0}"),
        ({"agents": None, "num_envs": 2}, ValueError, "agents must be given for num_envs=2"),
        ({"num_envs": 0}, ValueError, "num_envs must be from 1 to 2147483648, got 0"),
        ({"num_envs": 1.5}, TypeError, "num_envs must be an integer"),
        ({"env_index": 2**63}, ValueError, "env_index must be from 0 to"),
        ({"resample_every": 10**20}, ValueError, "resample_every must be from 1 to"),
        ({"agents": 2}, TypeError, "agents must be a sequence"),
        ({"agents": [["a"]]}, TypeError, r"agents must be hashable, got \['a'\]"),
        ({"env_index": -1}, ValueError, "env_index must be from 0"),
        ({"env_index": 1.0}, TypeError, "env_index must be an integer"),
        ({"resample_every": 0}, ValueError, "resample_every must be from 1"),
        ({"warmup_episodes": -1}, ValueError, "warmup_episodes must be from 0"),
        (
            {"mapping": Uniform(2, replace=False)},
            ValueError,
            "replace=False needs at least one policy per seat, got 2 policies for 3 seats",
        ),
        ({"mapping": ByEnvIndex(2)}, ValueError, "env_index must be the index of this environment"),
        ({"mapping": ByEnvIndex(2, num_envs=4), "env_index": 4}, ValueError, "env_index must be below num_envs=4"),
        (
            {"mapping": Shared(ByEnvIndex(2, num_envs=4)), "env_index": 9},
            ValueError,
            "env_index must be below num_envs=4",
        ),
        ({"mapping": ByEnvIndex(2, num_envs=4), "num_envs": 6}, ValueError, "env_index must be below num_envs=4"),
    ],
)
def test_invalid_settings_raise_at_construction(settings, error, message):
    with pytest.raises(error, match=f"^{message}"):
        assigner_of(**settings)


def test_mapping_that_needs_a_seed_raises_without_a_pinned_seed():
    class Spanning(PolicyMapping):
        needs_seed = True

        def assign(self, draw):
            return np.zeros((draw.num_envs, draw.num_seats), int)

    with pytest.raises(ValueError, match="seed must be given"):
        assigner_of(Spanning(), seed=None)
    assigner_of(Spanning())


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([0, 3], ValueError, "rows must be from 0 to 2"),
        ([-1], ValueError, "rows must be from 0 to 2"),
        ([0.0], TypeError, "rows must be integers"),
        ([1, 1], ValueError, r"rows must be distinct, got \[1, 1\]"),
        ([2, 0, 2], ValueError, "rows must be distinct"),
        ([0, 2, 2], ValueError, "rows must be distinct"),
        ([[0]], TypeError, "rows must be integers"),
        ([True, False], ValueError, r"rows must be a mask of shape \(3,\)"),
    ],
)
def test_invalid_rows_raise(rows, error, message):
    assigner = assigner_of(num_envs=3)
    with pytest.raises(error, match=f"^{message}"):
        assigner.begin_episodes(rows)
    assert assigner.episode.tolist() == [-1] * 3


@pytest.mark.parametrize("agents", ["ab", b"ab"])
def test_string_as_late_agents_raises(agents):
    assigner = assigner_of(agents=None)
    assigner.begin_episodes(agents=["a"])
    with pytest.raises(TypeError, match="agents must be a sequence, got b?'ab'"):
        assigner.add_agents(agents)
    assert assigner.agents == ("a",)


def test_repr_of_an_assigner_shows_mapping_agents_and_settings():
    text = "PolicyAssigner(Uniform(4), agents=['a', 'b', 'c'], num_envs=1, resample_every=10, seed=0)"
    assert repr(assigner_of(4)) == text
    assert len(repr(assigner_of(4, [f"agent_{i}" for i in range(10_000)]))) < 200
