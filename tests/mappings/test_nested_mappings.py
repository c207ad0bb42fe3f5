"""Nested mappings: `Shared`, `Teams`, `Roles` and their combinations."""

import os
import pickle
import subprocess
import sys
from enum import Enum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import pz_policymap as pm
from pz_policymap import (
    Balanced,
    ByEnvIndex,
    Draw,
    Fixed,
    Focal,
    FromFunction,
    PerWorker,
    PolicyAssigner,
    PolicyMapping,
    Roles,
    RoundRobin,
    Shared,
    Teams,
    Uniform,
    Weighted,
)
from pz_policymap.randomness.draw import _prefix
from tests.stub_envs import StubParallel

MIN_P = 1e-4  # of a chi-square test; the seeds are fixed, so it passes or fails once and for all
MANY = 12_000
TAG = ("adversary_0", "adversary_1", "agent_0", "agent_1")


def draw_of(agents, num_envs=1, seed=0, episode=0):
    return Draw.at(seed, list(agents), np.arange(num_envs), np.full(num_envs, episode))


def by_rng(agents, draw):
    return {agent: int(draw.rng.integers(4)) for agent in agents}


def first_letter(agent):
    return agent[0]


def color(agent):
    return agent.split("_")[0]


# What a rule does


def test_teams_have_one_policy_each_drawn_as_for_seats():
    teams = Teams(Uniform(4)).assign(draw_of(["red_0", "blue_0", "red_1", "green_0", "blue_1"], 500))
    assert (teams[:, [0, 1]] == teams[:, [2, 4]]).all()
    seen = {tuple(row) for row in teams[:, [0, 1, 3]].tolist()}
    assert len(seen) == 4**3


def test_mapping_inside_teams_gets_teams_in_the_order_of_their_first_agents():
    teams = Teams(Fixed({"x": 1, "y": 2}), {"a": "y", "b": "x", "c": "y"})
    assert teams.assign(draw_of(["a", "b", "c"])).tolist() == [[2, 1, 2]]


def test_every_role_draws_from_its_own_policies():
    roles = Roles({"agent": Uniform([7, 8]), "adversary": Uniform(3)})
    drawn = roles.assign(draw_of(TAG, 200))
    assert set(drawn[:, :2].ravel()) == {0, 1, 2}
    assert set(drawn[:, 2:].ravel()) == {7, 8}


def test_mapping_of_a_role_gets_the_agents_of_its_role():
    roles = Roles({"agent": Fixed({"agent_0": 5, "agent_1": 6}), "adversary": Shared(Uniform(3))})
    drawn = roles.assign(draw_of(["agent_1", "adversary_0", "agent_0", "adversary_1"], 50))
    assert (drawn[:, [0, 2]] == [6, 5]).all()
    assert (drawn[:, 1] == drawn[:, 3]).all()


def test_roles_may_be_numbers_returned_by_a_function():
    roles = Roles({0: Fixed(4), 1: Fixed(5)}, role_of=lambda agent: agent % 2)
    assert roles.assign(draw_of([3, 4, 5])).tolist() == [[5, 4, 5]]


def test_role_draw_does_not_depend_on_other_roles():
    both = Roles({"agent": Uniform(9), "adversary": Uniform(9)})
    turned = Roles({"adversary": Uniform(9), "agent": Uniform(9)})
    alone = Roles({"agent": Uniform(9)})
    assert both == turned
    expected = both.assign(draw_of(TAG, 50))
    np.testing.assert_array_equal(expected, turned.assign(draw_of(TAG, 50)))
    np.testing.assert_array_equal(expected[:, 2:], alone.assign(draw_of(TAG[2:], 50)))


class Side(str, Enum):
    LEFT = "left"


@pytest.mark.parametrize("name", [Side.LEFT, np.str_("left")], ids=["enum", "numpy"])
def test_roles_with_equal_names_get_equal_bits(name):
    plain = Roles({"left": Uniform(9)}, lambda agent: "left").assign(draw_of("abc", 50))
    _prefix.cache_clear()  # equal names are one entry, whichever came first
    other = Roles({name: Uniform(9)}, lambda agent: name).assign(draw_of("abc", 50))
    np.testing.assert_array_equal(plain, other)


def test_roles_and_teams_on_a_real_environment():
    from mpe2 import simple_tag_v3

    env = simple_tag_v3.parallel_env(num_good=1, num_adversaries=3, max_cycles=3)
    env = pm.wrap(env, Roles({"adversary": Shared(Uniform([4, 5, 6])), "agent": Uniform(4)}), resample_every=1)
    met = set()
    for seed in range(40):
        _, infos = env.reset(seed=seed)
        tags = {agent: info["policy_id"] for agent, info in infos.items()}
        assert tags["adversary_0"] == tags["adversary_1"] == tags["adversary_2"]
        met.add((tags["adversary_0"], tags["agent_0"]))
    assert met <= {(a, b) for a in (4, 5, 6) for b in range(4)}
    assert len(met) > 9


# Bits are never shared

BOTH = {"agent": Uniform(4), "adversary": Uniform(4)}
INDEPENDENT = {
    "two roles": (Roles(BOTH), TAG, (0, 2)),
    "two roles, other seats": (Roles(BOTH), TAG, (1, 2)),
    "seats of one role": (Roles(BOTH), TAG, (2, 3)),
    "roles of roles": (Roles({"a": Roles(BOTH)}, first_letter), TAG, (0, 2)),
    "roles in sibling roles": (
        Roles({"a": Roles({"x": Uniform(4)}, lambda agent: "x"), "b": Roles({"x": Uniform(4)}, lambda agent: "x")}),
        ("a_0", "b_0"),
        (0, 1),
    ),
    "shared roles": (Roles({"agent": Shared(Uniform(4)), "adversary": Shared(Uniform(4))}), TAG, (0, 2)),
    "roles without replacement": (
        Roles({"agent": Uniform(4, replace=False), "adversary": Uniform(4, replace=False)}),
        TAG,
        (0, 2),
    ),
    "roles by functions": (Roles({"agent": FromFunction(by_rng), "adversary": FromFunction(by_rng)}), TAG, (0, 2)),
    "teams": (Teams(Uniform(4)), TAG, (0, 2)),
    "teams of one are not the seats": (
        Roles({"agent": Teams(Uniform(4), {"agent_0": 0, "agent_1": 1}), "adversary": Uniform(4)}),
        TAG,
        (0, 2),
    ),
    "teams in roles": (Roles({"agent": Teams(Uniform(4)), "adversary": Teams(Uniform(4))}), TAG, (0, 2)),
    "focal and background": (Focal(Uniform(4), Uniform(4), rotate=False), TAG, (0, 1)),
    "two of the background": (Focal(Uniform(4), Uniform(4), rotate=False), TAG, (1, 3)),
    "two focal seats": (Focal(Uniform(4), Uniform(4), num_focal=2, rotate=False), TAG, (0, 1)),
    "rotated": (Focal(Uniform(4), Uniform(4)), TAG, (0, 1)),
    "rotated among teams": (Teams(Focal(Uniform(4), Uniform(4))), TAG, (0, 2)),
    "focal inside focal": (
        Focal(Focal(Uniform(4), Uniform(4)), Focal(Uniform(4), Uniform(4)), num_focal=2, rotate=False),
        TAG,
        (0, 2),
    ),
    "focal in roles": (
        Roles({"agent": Focal(Uniform(4), Uniform(4)), "adversary": Focal(Uniform(4), Uniform(4))}),
        TAG,
        (0, 2),
    ),
    "roles in the background": (Focal(Uniform(4), Roles(BOTH), rotate=False), TAG, (1, 2)),
    "workers' orders": (
        Roles({"agent": PerWorker(4, 1, 1), "adversary": PerWorker(4, 1, 1)}),
        TAG,
        (0, 2),
    ),
    "balanced roles": (Roles({"agent": Balanced(4, MANY), "adversary": Balanced(4, MANY)}), TAG, (0, 2)),
    "tournaments in seeded order": (
        Roles({r: RoundRobin(4**7, MANY, order="seeded", ordered_seats=False) for r in BOTH}),
        ("agent_0", "adversary_0"),
        (0, 1),
    ),
}


@pytest.mark.parametrize(("rule", "agents", "seats"), INDEPENDENT.values(), ids=INDEPENDENT.keys())
def test_two_draws_from_four_policies_agree_in_a_quarter_of_the_draws(rule, agents, seats):
    rule.check(tuple(agents))
    first, second = (rule.assign(draw_of(agents, MANY))[:, list(seats)] % 4).T
    # 16 pairs alike: beyond p = 1e-4 the two would depend on each other, or not be uniform.
    assert chisquare(np.bincount(first * 4 + second, minlength=16)).pvalue > MIN_P
    # 4 standard deviations of a binomial share.
    assert abs((first == second).mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / MANY)


def test_nested_mapping_has_other_bits_than_the_same_mapping_alone():
    alone = Uniform(4).assign(draw_of(TAG, MANY))
    for rule in (
        Teams(Uniform(4), {a: a for a in TAG}),
        Roles({"a": Uniform(4)}, first_letter),
        Focal(Uniform(4), Uniform(4)),
    ):
        agree = (rule.assign(draw_of(TAG, MANY)) == alone).mean(axis=0)
        assert (abs(agree - 0.25) < 4 * np.sqrt(0.25 * 0.75 / MANY)).all()


def test_draws_do_not_depend_on_the_process():
    code = (
        "from pz_policymap import *\n"
        "rule = Roles({'agent': Uniform(50), 'adversary': Teams(Focal(Uniform(50), Uniform(50)), {'adversary_0': 'x',"
        "'adversary_1': 'y'})})\n"
        f"print(rule.assign(Draw.at(5, {TAG!r}, range(8), [3] * 8)).tolist(), rule)"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(said) == 1


# What holds for all of them

PREFIXES = ("red", "blue", "green")
POOL = [f"{prefix}_{i}" for i in range(3) for prefix in PREFIXES]

leaves = st.one_of(
    st.builds(Uniform, st.integers(1, 5), st.booleans()),
    st.builds(Uniform, st.just(len(POOL)), replace=st.just(False)),
    st.builds(Weighted, st.lists(st.integers(1, 5), min_size=1, max_size=4)),
    st.builds(Fixed, st.integers(0, 9)),
    st.builds(ByEnvIndex, st.integers(1, 4)),
    st.builds(PerWorker, st.integers(3, 5), st.integers(1, 3), st.integers(1, 3)),
    st.builds(Balanced, st.integers(1, 4), st.just(2**40 // 2**8)),
    st.builds(RoundRobin, st.integers(1, 4), st.integers(1, 3), st.sampled_from(["lexicographic", "seeded"])),
    st.just(FromFunction(by_rng)),
)


def composed(inner):
    return st.one_of(
        st.builds(Shared, inner),
        st.builds(Teams, inner, st.just(color)),
        st.builds(Roles, st.fixed_dictionaries(dict.fromkeys(PREFIXES, inner))),
        st.builds(Roles, st.fixed_dictionaries({prefix[0]: inner for prefix in PREFIXES}), st.just(first_letter)),
        st.builds(Focal, inner, inner, rotate=st.booleans()),
    )


rules = st.recursive(leaves, composed, max_leaves=6)


@settings(max_examples=150, deadline=None)
@given(rule=rules, agents=st.permutations(POOL), num_seats=st.integers(1, 6), late=st.integers(1, 3))
def test_late_agents_keep_policies_of_others(rule, agents, num_seats, late):
    few, many = tuple(agents[:num_seats]), tuple(agents[: num_seats + late])
    rule.check(few)
    rule.check(many)
    if not rule.needs_all_seats:
        here, there = (rule.assign(draw_of(seats, 20, episode=30)) for seats in (few, many))
        np.testing.assert_array_equal(here, there[:, :num_seats])


@pytest.mark.parametrize(
    "rule",
    [
        Uniform(3),
        Uniform(3, mix=False),
        Uniform(9, replace=False),
        Weighted([1, 2]),
        Fixed(1),
        ByEnvIndex(2),
        FromFunction(by_rng),
        PerWorker(4, 2, 2),
        Shared(Uniform(3)),
        Shared(Focal(Uniform(3), Uniform(3))),
        Shared(Balanced(3, 4)),
        Teams(Uniform(3)),
        Roles({"red": Uniform(3)}),
        Focal(Uniform(3), Uniform(3), rotate=False),
        Teams(Focal(Uniform(3), Roles({"red": Uniform(3)}), rotate=False)),
    ],
)
def test_needs_all_seats_is_false(rule):
    assert not rule.needs_all_seats


@pytest.mark.parametrize(
    "rule",
    [
        Focal(Uniform(3), Uniform(3)),
        Balanced(3, 4),
        RoundRobin(3),
        Teams(Balanced(3, 4)),
        Roles({"red": RoundRobin(3)}),
        Focal(Uniform(3), Balanced(3, 4), rotate=False),
    ],
)
def test_needs_all_seats_is_true(rule):
    assert rule.needs_all_seats


@settings(max_examples=150, deadline=None)
@given(rule=rules, agents=st.permutations(POOL), num_seats=st.integers(1, 6), data=st.data())
def test_assignment_does_not_depend_on_the_environments_drawn_with_it(rule, agents, num_seats, data):
    seats = agents[:num_seats]
    env_index, episode = np.arange(24), np.arange(24) * 7 % 50
    together = rule.assign(Draw.at(1, seats, env_index, episode))
    assert together.shape == (24, num_seats)
    rows = np.array(data.draw(st.lists(st.integers(0, 23), min_size=1, max_size=8)))
    np.testing.assert_array_equal(together[rows], rule.assign(Draw.at(1, seats, env_index[rows], episode[rows])))


@settings(max_examples=60, deadline=None)
@given(rule=rules, agents=st.permutations(POOL))
def test_mapping_survives_pickling_and_binding(rule, agents):
    copy = pickle.loads(pickle.dumps(rule, protocol=4)) if "<function " not in repr(rule) else rule
    assert repr(copy) == repr(rule)
    policies = rule.assign(draw_of(agents, 10))
    np.testing.assert_array_equal(policies, copy.assign(draw_of(agents, 10)))
    np.testing.assert_array_equal(policies, rule.bind(lambda function: function()).assign(draw_of(agents, 10)))
    assert policies.min() >= 0
    assert rule.num_policies is None or policies.max() < rule.num_policies


@pytest.mark.parametrize(
    ("rule", "size"),
    [
        (Teams(Uniform(6)), 6),
        (Roles({"a": Uniform(6), "b": Uniform(9)}), 9),
        (Roles({"a": Uniform(6), "b": Uniform([9])}), None),
        (Focal(Uniform(2), Uniform(5)), 5),
        (Focal(Fixed(2), Uniform(5)), None),
        (Focal(Uniform(2), Weighted([[1, 0, 1], [0, 1, 1]])), 3),
        (PerWorker(6, 2, 2), 6),
        (Balanced([1, 2], 4), None),
        (RoundRobin(7), 7),
    ],
)
def test_num_policies_is_known_if_all_children_declare_it(rule, size):
    assert rule.num_policies == size


def test_weights_callables_are_called_once_in_the_order_of_children():
    names = ["x", "y", "focal", "background", "teams"]
    asked = []

    def weights(name):
        return Weighted(lambda: asked.append(name) or [1, 1])

    rule = Roles(
        {"a": Roles({"x": weights("x"), "y": weights("y")}), "b": Focal(weights("focal"), Teams(weights("background")))}
    )
    for nested in (rule, Teams(Shared(weights("teams")))):
        bound = nested.bind(lambda function: function())
        assert "<function " not in repr(bound)
    assert asked == names


def test_needs_are_derived_from_children():
    assert Roles({"a": ByEnvIndex(2), "b": Uniform(2)}).needs_env_index
    assert not Roles({"a": ByEnvIndex(2), "b": Uniform(2)}).needs_seed
    assert Teams(PerWorker(2, 1, 1)).needs_seed
    assert Focal(Uniform(2), RoundRobin(2)).counts_blocks
    assert not Focal(Uniform(2), Balanced(2, 2)).counts_blocks
    assert Roles({"a": Balanced(2, 8), "b": Balanced(2, 6), "c": Uniform(2)}).num_envs == 6


# Late agents


def test_late_agent_gets_the_policy_of_its_team_and_a_late_team_is_drawn():
    script = [("red_0", "blue_0"), ("red_0", "blue_0", "red_1", "green_0", "green_1"), ()]
    for seed in range(20):
        env = pm.wrap(StubParallel(script, possible_agents=None), Teams(Uniform(1000)), seed=seed)
        env.reset()
        before = env.policy_ids
        _, _, _, _, infos = env.step({})
        assert env.policy_ids.items() >= before.items()
        tags = {agent: info["policy_id"] for agent, info in infos.items()}
        assert tags["red_1"] == before["red_0"]
        assert tags["green_0"] == tags["green_1"]
        everybody = ("red_0", "blue_0", "red_1", "green_0", "green_1")
        assert env.policy_ids == dict(
            zip(everybody, Teams(Uniform(1000)).assign(draw_of(everybody, seed=seed))[0], strict=True)
        )


def test_late_agent_joins_the_end_of_its_role():
    script = [("red_0", "blue_0"), ("red_0", "blue_0", "red_1"), ()]
    rule = Roles({"red": Uniform([5, 6, 7], replace=False), "blue": Uniform(4)})
    env = pm.wrap(StubParallel(script, possible_agents=None), rule)
    env.reset(seed=0)
    before = env.policy_ids
    env.step({})
    assert env.policy_ids.items() >= before.items()
    assert {env.policy_ids["red_0"], env.policy_ids["red_1"]} < {5, 6, 7}


def test_late_agent_without_a_role_raises():
    script = [("red_0",), ("red_0", "pink_0"), ()]
    env = pm.wrap(StubParallel(script, possible_agents=None), Roles({"red": Uniform(4)}))
    env.reset(seed=0)
    with pytest.raises(
        ValueError, match="mappings must hold every role, got none for 'pink', the role of agent 'pink_0'"
    ):
        env.step({})


def test_groups_are_copied_at_construction():
    group_of, mappings = {"a": "x", "b": "y"}, {"x": Uniform(2), "y": Uniform([4, 5])}
    teams, roles = Teams(Uniform(4), group_of), Roles(mappings, group_of)
    group_of["b"] = "x"
    mappings.clear()
    assert teams.team_of == roles.role_of == {"a": "x", "b": "y"}
    assert list(roles.mappings) == ["x", "y"]


# Bad input


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Shared(4), TypeError, "mapping must be a PolicyMapping, got 4"),
        (lambda: Teams(4), TypeError, "mapping must be a PolicyMapping, got 4"),
        (lambda: Teams(Uniform(2), "suffix"), ValueError, "team_of must be .* got 'suffix'"),
        (lambda: Teams(Uniform(2), 7), TypeError, "team_of must be .* got 7"),
        (lambda: Roles([Uniform(2)]), TypeError, "mappings must be a dict from role to PolicyMapping, got"),
        (lambda: Roles({}), ValueError, "mappings must hold at least one role, got none$"),
        (lambda: Roles({"a": 2}), TypeError, r"mappings\['a'\] must be a PolicyMapping, got 2"),
        (lambda: Roles({("a",): Uniform(2)}), TypeError, r"mappings must have strings or integers for roles, got \('a"),
        (lambda: Roles({1.5: Uniform(2)}), TypeError, "mappings must have strings or integers for roles, got 1.5"),
        (lambda: Roles({"a": Uniform(2)}, "suffix"), ValueError, "role_of must be .* got 'suffix'"),
    ],
)
def test_invalid_settings_raise_at_construction(make, error, message):
    with pytest.raises(error, match=f"^{message}"):
        make()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Roles({"agent": Uniform(2)}), "got none for 'adversary', the role of agent 'adversary_0', in .'agent'"),
        (
            Roles({"a": Uniform(2)}, {"agent_0": "a"}),
            "role_of must name a group for every agent, got none for 'adversary_0'",
        ),
        (Teams(Uniform(2), {"agent_0": "a"}), "team_of must name a group for every agent, got none for 'adversary_0'"),
        (
            Teams(Uniform(1, replace=False)),
            "replace=False needs at least one policy per seat, got 1 policies for 2 seats",
        ),
        (
            Roles({"agent": Uniform(1, replace=False), "adversary": Uniform(2)}),
            "one policy per seat, got 1 policies for 2 seats",
        ),
        (Teams(Fixed({"agent": 1})), "policy must hold every agent, got no policy for 'adversary'"),
    ],
)
def test_agents_that_a_mapping_cannot_serve_raise_at_construction(rule, message):
    with pytest.raises(ValueError, match=message):
        PolicyAssigner(rule, TAG)


class Halves(PolicyMapping):
    def assign(self, draw):
        return np.full((draw.num_envs, draw.num_seats), 0.5)


class TooFew(PolicyMapping):
    def assign(self, draw):
        return np.zeros((draw.num_envs, 1), int)


class Beyond(PolicyMapping):
    num_policies = 2

    def assign(self, draw):
        return np.full((draw.num_envs, draw.num_seats), 2)


@pytest.mark.parametrize(
    ("inner", "error", "message"),
    [
        (Halves(), TypeError, "Halves.* must assign integers, got "),
        (TooFew(), ValueError, "TooFew.*nothing for agent"),
        (Beyond(), ValueError, "Beyond.* must assign policies from 0 to 1, got 2 for agent"),
    ],
)
@pytest.mark.parametrize(
    "around",
    [
        Teams,
        lambda inner: Roles({"adversary": Uniform(2), "agent": inner}),
        lambda inner: Focal(inner, Uniform(2), num_focal=2),
        lambda inner: Focal(Uniform(2), inner),
    ],
    ids=["teams", "roles", "focal", "background"],
)
def test_invalid_policies_of_a_child_raise_an_error_that_names_it(around, inner, error, message):
    assigner = PolicyAssigner(around(inner), TAG, seed=0)
    with pytest.raises(error, match=message):
        assigner.begin_episodes()
    assert assigner.assignment() == {}
