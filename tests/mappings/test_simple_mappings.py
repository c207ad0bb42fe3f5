"""The simple rules: Uniform, Weighted, Fixed, ByEnvIndex, FromFunction, Shared, and what may be handed in as one."""

from dataclasses import dataclass, field, fields
from functools import cached_property, partial

import numpy as np
import pytest

from pz_policymap import (
    Balanced,
    ByEnvIndex,
    Draw,
    Fixed,
    Focal,
    FromFunction,
    PerWorker,
    PolicyMapping,
    RoundRobin,
    Shared,
    Uniform,
    Weighted,
)
from pz_policymap.mappings.base import checked_assign
from pz_policymap.mappings.conversion import as_mapping
from pz_policymap.mappings.representation import saved_text

AGENTS = ["a", "b", "c", "d"]


def draw_of(num_envs=1, agents=AGENTS, seed=0):
    return Draw.at(seed, list(agents), np.arange(num_envs), np.zeros(num_envs, np.int64))


def one_for_all(agents, draw):
    return dict.fromkeys(agents, draw.env_index)


RULES = {
    "uniform": Uniform(4),
    "uniform of some": Uniform([5, 9, 2]),
    "uniform unmixed": Uniform(4, mix=False),
    "uniform without replacement": Uniform(9, replace=False),
    "weighted": Weighted([0.2, 0.3, 0.5]),
    "weighted of some": Weighted([1, 3], policies=[7, 4]),
    "weighted by a callable": Weighted(lambda: [0.5, 0.5]),
    "fixed": Fixed(3),
    "fixed by agent": Fixed({agent: 9 - i for i, agent in enumerate("abcdefgh")}),
    "by env index": ByEnvIndex(3),
    "function": FromFunction(one_for_all),
    "shared": Shared(Weighted([0.2, 0.8])),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_batched_environments_get_the_assignment_of_each_alone(rule):
    together = rule.assign(draw_of(num_envs=40))
    for env_index in (0, 1, 17, 39):
        alone = rule.assign(Draw.at(0, AGENTS, [env_index], [0]))
        np.testing.assert_array_equal(together[[env_index]], alone)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_appended_seats_keep_earlier_policies(rule):
    few, many = (rule.assign(draw_of(num_envs=40, agents=agents)) for agents in (AGENTS, [*AGENTS, "e", "f"]))
    assert many.shape == (40, 6)
    np.testing.assert_array_equal(few, many[:, :4])


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_repr_of_a_mapping_names_its_class_and_settings_without_addresses(rule):
    assert "0x" not in repr(rule)
    assert repr(rule).startswith(type(rule).__name__)
    assert repr(rule) not in [repr(other) for other in RULES.values() if other is not rule]


def test_uniform_without_mixing_assigns_one_policy_to_every_seat():
    policies = Uniform(4, mix=False).assign(draw_of(num_envs=100))
    assert (policies == policies[:, :1]).all()
    assert set(policies.ravel()) == {0, 1, 2, 3}


def test_uniform_without_mixing_is_shared_uniform():
    np.testing.assert_array_equal(Uniform(4, mix=False).assign(draw_of(50)), Shared(Uniform(4)).assign(draw_of(50)))


def test_uniform_without_replacement_assigns_distinct_policies():
    policies = Uniform([3, 5, 8, 13], replace=False).assign(draw_of(num_envs=100))
    assert (np.sort(policies, axis=1) == [3, 5, 8, 13]).all()


def test_uniform_draws_from_the_list_given():
    assert set(Uniform([4, 6]).assign(draw_of(num_envs=50)).ravel()) == {4, 6}


def test_by_env_index_assigns_policy_i_modulo_policies_to_every_seat():
    policies = ByEnvIndex([4, 7, 9], num_envs=6).assign(draw_of(num_envs=6))
    assert policies.tolist() == [[4] * 4, [7] * 4, [9] * 4] * 2


def test_function_is_called_once_per_environment_with_agents_in_seat_order():
    asked = []

    def remember(agents, draw):
        asked.append((agents, draw.env_index, draw.episode, draw.block))
        return dict.fromkeys(agents, 1)

    FromFunction(remember).assign(draw_of(num_envs=2))
    assert asked == [(AGENTS, 0, 0, 0), (AGENTS, 1, 0, 0)]


def test_a_function_may_return_numpy_integers():
    rule = FromFunction(lambda agents, draw: {agent: np.int64(2) for agent in agents})
    assert rule.assign(draw_of()).tolist() == [[2] * 4]


def test_bind_replaces_weights_callables_once_in_a_fixed_order():
    first, second = (lambda: [1, 0]), (lambda: [0, 1])
    asked = []
    for rule in (Weighted(first), Shared(Weighted(second))):
        bound = rule.bind(lambda function: asked.append(function) or function())
        assert "<function " not in repr(bound)
    assert asked == [first, second]


def test_a_weights_callable_may_follow_a_population_that_grows():
    weights = [[1.0], [0.0, 0.0, 1.0]]
    rule = Weighted(lambda: weights.pop(0))
    assert [rule.assign(draw_of()).tolist() for _ in range(2)] == [[[0] * 4], [[2] * 4]]


@pytest.mark.parametrize(
    ("rule", "size"),
    [
        (Uniform(4), 4),
        (Uniform([4, 5]), None),
        (Weighted([1, 2, 3]), 3),
        (Weighted(lambda: [1]), None),
        (Weighted(lambda: [1, 1], policies=2), 2),
        (Weighted([1, 1], policies=[3, 4]), None),
        (Fixed(2), None),
        (ByEnvIndex(3), 3),
        (ByEnvIndex([3]), None),
        (FromFunction(one_for_all), None),
        (FromFunction(one_for_all, num_policies=5), 5),
        (Shared(Uniform(6)), 6),
    ],
)
def test_num_policies_is_the_declared_size(rule, size):
    assert rule.num_policies == size


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Uniform(0), ValueError, "policies must be from 1 .*, got 0"),
        (lambda: Uniform(-2), ValueError, "policies must be from 1 .*, got -2"),
        (lambda: Uniform(2.0), TypeError, "policies must be an integer, got 2.0"),
        (lambda: Uniform(True), TypeError, "policies must be an integer, got True"),
        (lambda: Uniform("4"), TypeError, "policies must be an integer, got '4'"),
        (lambda: Uniform([]), ValueError, "policies must hold at least one policy"),
        (lambda: Uniform({4, 5}), TypeError, r"policies must be a sequence, got \{4, 5\}"),
        (lambda: Draw.at(0, {"a", "b"}, [0], [0]), TypeError, "agents must be a sequence, got {"),
        (lambda: Uniform([1, 1]), ValueError, r"policies must be distinct, got \[1, 1\]"),
        (lambda: Uniform([0, -1]), ValueError, r"policies\[1\] must be from 0"),
        (lambda: Uniform([0, 1.5]), TypeError, r"policies\[1\] must be an integer, got 1.5"),
        (lambda: Uniform(4, mix="no"), TypeError, "mix must be True or False, got 'no'"),
        (lambda: Uniform(4, replace=0), TypeError, "replace must be True or False, got 0"),
        (lambda: RoundRobin(4, self_matches=None), TypeError, "self_matches must be True or False, got None"),
        (lambda: RoundRobin(4, ordered_seats=1), TypeError, "ordered_seats must be True or False, got 1"),
        (lambda: Focal(Fixed(0), Uniform(4), rotate="yes"), TypeError, "rotate must be True or False, got 'yes'"),
        (lambda: Uniform(4, mix=False, replace=False), ValueError, "mix=False .* replace=False forbids$"),
        (lambda: Weighted([0.5, float("nan")]), ValueError, "weights must be finite and not negative"),
        (lambda: Weighted([0.5, float("inf")]), ValueError, "weights must be finite and not negative"),
        (lambda: Weighted([0.5, -0.1]), ValueError, "weights must be finite and not negative"),
        (lambda: Weighted([0, 0.0]), ValueError, r"weights must not all be zero, got \[0. 0.\]"),
        (lambda: Weighted([]), ValueError, "weights must be"),
        (lambda: Weighted(3), ValueError, "weights must be"),
        (lambda: Weighted("heavy"), TypeError, "weights must be"),
        (lambda: Weighted([1, 2], policies=3), ValueError, "weights must be 3 numbers, one per policy, got 2"),
        (lambda: Weighted([1, 2], policies=[1]), ValueError, "weights must be 1 numbers, one per policy, got 2"),
        (lambda: Weighted([1], policies=0), ValueError, "policies must be"),
        (lambda: Fixed(-1), ValueError, "policy must be from 0 .*, got -1"),
        (lambda: Fixed({"a": 0.5}), TypeError, r"policy\['a'\] must be an integer, got 0.5"),
        (
            lambda: Fixed({"a": 0, "b": 2**31}),
            ValueError,
            r"policy\['b'\] must be from 0 to 2147483647, got 2147483648",
        ),
        (
            lambda: ByEnvIndex(3, num_envs=8),
            ValueError,
            "num_envs must be divisible by .* got num_envs=8 and 3 policies",
        ),
        (
            lambda: ByEnvIndex([1, 2], num_envs=3),
            ValueError,
            "num_envs must be divisible by .* got num_envs=3 and 2 policies",
        ),
        (lambda: ByEnvIndex(2, num_envs=0), ValueError, "num_envs must be at least 1, got 0"),
        (lambda: ByEnvIndex(0), ValueError, "policies must be"),
        (lambda: FromFunction(3), TypeError, "fn must be callable, got 3"),
        (lambda: FromFunction(one_for_all, num_policies=0), ValueError, "num_policies must be at least 1"),
        (lambda: Shared(4), TypeError, "mapping must be a PolicyMapping, got 4"),
    ],
)
def test_invalid_settings_raise_at_construction(make, error, message):
    with pytest.raises(error, match=f"^{message}"):
        make()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Uniform(3, replace=False), "replace=False needs at least one policy per seat, got 3 policies for 4 seats"),
        (Fixed({"a": 0, "b": 0, "c": 1}), "policy must hold every agent, got no policy for 'd'"),
        (Shared(Fixed({"b": 0})), "policy must hold every agent, got no policy for 'a'"),
    ],
)
def test_agents_that_a_mapping_cannot_serve_raise(rule, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        rule.check(tuple(AGENTS))


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ([0, 1, 2, 3], TypeError, r"fn must return a dict from agent to policy, got \[0, 1, 2, 3\]"),
        ({"a": 0, "b": 1}, ValueError, r"fn must return a policy for every agent, got none for \['c', 'd'\]"),
        ({"a": 0, "b": 1, "c": 2, "d": 0.5}, TypeError, "the policy of agent 'd' must be an integer, got 0.5"),
        ({"a": 0, "b": 1, "c": 2, "d": True}, TypeError, "the policy of agent 'd' must be an integer, got True"),
        ({"a": 0, "b": -1, "c": 2, "d": 0}, ValueError, "the policy of agent 'b' must be from 0 to 3, got -1"),
        ({"a": 0, "b": 4, "c": 2, "d": 0}, ValueError, "the policy of agent 'b' must be from 0 to 3, got 4"),
    ],
)
def test_invalid_return_value_of_a_function_raises(answer, error, message):
    with pytest.raises(error, match=f"^{message}"):
        FromFunction(lambda agents, draw: answer, num_policies=4).assign(draw_of())


TWO, FOUR = np.int64(2), np.array(4)


@pytest.mark.parametrize(
    ("kind", "given", "plain"),
    [
        (Uniform, [FOUR], [4]),
        (Uniform, [np.array([4, 5]), np.True_, np.False_], [(4, 5), True, False]),
        (Weighted, [[1, 2], np.array([4, 5])], [[1, 2], (4, 5)]),
        (Fixed, [TWO], [2]),
        (Fixed, [{"a": TWO}], [{"a": 2}]),
        (ByEnvIndex, [TWO, FOUR], [2, 4]),
        (FromFunction, [one_for_all, TWO], [one_for_all, 2]),
        (Focal, [Fixed(0), Uniform(4), TWO, np.False_], [Fixed(0), Uniform(4), 2, False]),
        (Balanced, [FOUR, TWO, np.array([1, 2, 3, 4.0])], [4, 2, (1.0, 2.0, 3.0, 4.0)]),
        (RoundRobin, [FOUR, TWO], [4, 2]),
        (PerWorker, [FOUR, TWO, TWO], [4, 2, 2]),
    ],
)
def test_settings_are_kept_as_plain_values(kind, given, plain):
    rule = kind(*given)
    assert rule == kind(*plain)
    assert repr(rule) == repr(kind(*plain))
    kept = [getattr(rule, setting.name) for setting in fields(rule)]
    assert kept[1 : len(plain)] == plain[1:]
    for value in [*kept, *(one for values in kept if isinstance(values, (dict, tuple)) for one in values)]:
        assert not isinstance(value, (np.generic, np.ndarray)), rule


def test_settings_are_copied_at_construction():
    policy = {"a": 3}
    rule = Fixed(policy)
    policy["a"] = 0
    assert rule.policy == {"a": 3}


@pytest.mark.parametrize("size", [None, 2**31, 2**40])
def test_largest_policy_is_the_largest_int32(size):
    class Last(PolicyMapping):
        num_policies = size
        policy = 2**31 - 1

        def assign(self, draw):
            return np.full((draw.num_envs, draw.num_seats), self.policy)

    rule = Last()
    assert checked_assign(rule, draw_of()).tolist() == [[2**31 - 1] * 4]
    rule.policy += 1
    with pytest.raises(ValueError, match="it must assign policies from 0 to 2147483647, got 2147483648 for agent 'a'"):
        checked_assign(rule, draw_of())


def test_policies_of_a_rule_derived_from_another_are_checked():
    class Shift(Uniform):
        def indices(self, picks):
            return picks + 100

    with pytest.raises(ValueError, match=r"it must assign policies from 0 to 1, got 10[01] for agent 'a'"):
        checked_assign(Shift(2), draw_of())
    with pytest.raises(ValueError, match="it must assign policies from 0 to 1"):
        checked_assign(Focal(Fixed(0), Shift(2)), draw_of())


def test_an_error_at_a_draw_names_all_environments_that_drew():
    with pytest.raises(ValueError, match=r"^Uniform.* failed at the draw of environments 0 to 2, episode 0: "):
        checked_assign(Uniform(1, replace=False), draw_of(num_envs=3))


def test_as_mapping_accepts_numbers_functions_and_mappings():
    rule = Fixed(1)
    assert as_mapping(rule) is rule
    assert as_mapping(np.int64(3)) == Uniform(3)
    assert as_mapping(one_for_all) == FromFunction(one_for_all)


@pytest.mark.parametrize("value", [None, 2.5, True, Uniform, [0, 1]])
def test_as_mapping_of_other_values_raises(value):
    with pytest.raises(TypeError, match="mapping must be"):
        as_mapping(value)


def test_cached_attributes_are_not_settings():
    class Lazy(PolicyMapping):
        def __init__(self, size):
            self.size = size

        @cached_property
        def table(self):
            return np.arange(self.size)

        def assign(self, draw):
            return self.table[draw.integers(self.size)]

    rule = Lazy(3)
    before = repr(rule)
    rule.assign(draw_of())
    assert repr(rule) == before == "Lazy(size=3)"


def test_field_without_init_is_left_out_of_repr():
    @dataclass(frozen=True)
    class Squared(PolicyMapping):
        size: int
        area: int = field(init=False)

        def __post_init__(self):
            object.__setattr__(self, "area", self.size**2)

        def assign(self, draw):
            return draw.integers(self.area)

    assert repr(Squared(3)) == "Squared(3)"


def test_repr_of_a_subclass_shows_its_own_settings():
    class Biased(Uniform):
        def __init__(self, size, bias):
            super().__init__(size)
            object.__setattr__(self, "bias", bias)

    assert repr(Biased(4, 0)) == "Biased(4, bias=0)"
    assert repr(Biased(4, 7)) == "Biased(4, bias=7)"


@pytest.mark.filterwarnings("error")
def test_huge_weights_do_not_overflow():
    policies = Weighted([1e308, 1e308, 1e308]).assign(draw_of(num_envs=500))
    assert set(policies.ravel().tolist()) == {0, 1, 2}
    rows = Focal(Fixed(1), Weighted([[1e308, 1e308], [1e-300, 1e-300]]), rotate=False)
    assert set(rows.assign(draw_of(num_envs=500))[:, 1:].ravel().tolist()) == {0, 1}


def test_a_draw_without_replacement_from_a_large_population_is_the_same_in_parts(monkeypatch):
    rule = Uniform(50, replace=False)
    whole = rule.assign(draw_of(num_envs=100))
    monkeypatch.setattr("pz_policymap.mappings.uniform._DECK_SIZES", 50 * 7)
    np.testing.assert_array_equal(rule.assign(draw_of(num_envs=100)), whole)


def test_repr_of_settings_that_differ_differs_and_saved_text_is_short():
    class Rule(PolicyMapping):
        def __init__(self, table):
            self.table = table

        def assign(self, draw):
            return self.table[draw.env_index]

    assert repr(Rule({"x": [1, 2.5], "y": np.arange(3)})) == "Rule(table={'x': [1, 2.5], 'y': [0, 1, 2]})"
    assert repr(Rule({"b": 1, "a": 2})) == repr(Rule({"a": 2, "b": 1}))
    assert repr(Rule({np.int64(1): 2})) == "Rule(table={1: 2})"
    assert repr(Rule({"b", "a"})) == "Rule(table={'a', 'b'})"
    assert repr(Rule(object())) == "Rule(table=<object>)"
    assert repr(Rule(draw_of)) == "Rule(table=<function draw_of>)"
    assert repr(Rule(partial(draw_of))) == "Rule(table=<partial>)"
    rule = Rule(1)
    rule._asked = 5  # not a setting
    assert repr(rule) == "Rule(table=1)"
    assert repr(Rule(np.float64(0.5))) == "Rule(table=0.5)"
    long, other = Rule(list(range(1000))), Rule([*range(999), 0])
    assert len(saved_text(long)) < 300
    assert saved_text(long) != saved_text(other)


def test_own_repr_of_a_mapping_is_kept():
    class Named(PolicyMapping):
        def __repr__(self):
            return "Named()"

        def assign(self, draw):
            return draw.integers(2)

    assert repr(Named()) == "Named()"
