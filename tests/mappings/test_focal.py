"""`Focal`: the choice of focal seats, and the draws of both parts."""

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from pz_policymap import (
    Balanced,
    ByEnvIndex,
    Draw,
    Fixed,
    Focal,
    FromFunction,
    PolicyAssigner,
    PolicyMapping,
    Roles,
    RoundRobin,
    Shared,
    Teams,
    Uniform,
    Weighted,
    wrap,
)
from tests.stub_envs import StubParallel

MIN_P = 1e-4  # of a chi-square test; the seeds are fixed, so it passes or fails once and for all
AGENTS = ["a", "b", "c", "d"]
LEARNER = Fixed(9)


def draw_of(num_envs=1, agents=AGENTS, seed=0):
    return Draw.at(seed, list(agents), np.arange(num_envs), np.zeros(num_envs, np.int64))


@pytest.mark.parametrize("num_focal", [1, 2, 3])
def test_sets_of_focal_seats_are_equally_likely(num_focal):
    is_focal = Focal(LEARNER, Uniform(4), num_focal).assign(draw_of(20_000)) == 9
    counts = [
        np.count_nonzero((is_focal == [seat in chosen for seat in range(4)]).all(axis=1))
        for chosen in itertools.combinations(range(4), num_focal)
    ]
    assert sum(counts) == 20_000
    assert chisquare(counts).pvalue > MIN_P


@pytest.mark.parametrize("num_focal", [1, 2, 4])
def test_focal_seats_without_rotation_are_the_first(num_focal):
    is_focal = Focal(LEARNER, Uniform(4), num_focal, rotate=False).assign(draw_of(50)) == 9
    assert (is_focal == (np.arange(4) < num_focal)).all()


def test_rotation_is_independent_of_the_policies():
    policies = Focal(Uniform([8, 9]), Uniform(4)).assign(draw_of(40_000))
    seat = np.argmax(policies >= 8, axis=1)
    focal = policies[np.arange(40_000), seat]
    neighbour = policies[np.arange(40_000), (seat + 1) % 4]
    counts = np.bincount(seat * 8 + (focal - 8) * 4 + neighbour, minlength=32)
    assert chisquare(counts).pvalue > MIN_P


@pytest.mark.parametrize("rotate", [False, True])
def test_focal_and_background_draw_for_their_own_seats(rotate):
    # Without replacement, the focal mapping serves one seat and the background three; neither could serve four.
    rule = Focal(Uniform([9], replace=False), Uniform([5, 6, 7], replace=False), rotate=rotate)
    PolicyAssigner(rule, AGENTS, seed=0)
    assert (np.sort(rule.assign(draw_of(100)), axis=1) == [5, 6, 7, 9]).all()


class Place(PolicyMapping):
    """Assigns policy i to the i-th seat of each call."""

    def assign(self, draw):
        return np.broadcast_to(np.arange(draw.num_seats), (draw.num_envs, draw.num_seats))


class BlindPlace(Place):
    reads_agents = False


@pytest.mark.parametrize("place", [Place(), BlindPlace()], ids=["by name", "blind"])
def test_focal_and_background_seats_are_in_seat_order(place):
    policies = Focal(place, place, num_focal=2).assign(draw_of(200))
    orders = {tuple(row) for row in policies.tolist()}
    assert orders == {(0, 1, 0, 1), (0, 0, 1, 1)}  # as 01 and 01 interleave, each in its order


def each_by_name(agents, draw):
    return {agent: "abcdefgh".index(agent) for agent in agents}


@pytest.mark.parametrize("num_focal", [1, 2, 3])
def test_focal_and_background_get_the_agents_of_their_seats(num_focal):
    names = Fixed({agent: i for i, agent in enumerate(AGENTS)})
    for focal, background in [(names, FromFunction(each_by_name)), (FromFunction(each_by_name), names)]:
        assert (Focal(focal, background, num_focal).assign(draw_of(30)) == [0, 1, 2, 3]).all()


def test_roles_in_the_background_serve_the_remaining_agents():
    agents = ["fox_0", "hen_0", "hen_1"]
    rule = Focal(LEARNER, Roles({"fox": Uniform([0, 1]), "hen": Shared(Uniform([4, 5, 6]))}))
    policies = rule.assign(draw_of(300, agents))
    focal_seat = np.argmax(policies == 9, axis=1)
    assert set(policies[focal_seat != 0, 0]) == {0, 1}
    hens = policies[focal_seat == 0, 1:]
    assert (hens[:, 0] == hens[:, 1]).all()
    assert set(hens.ravel()) == {4, 5, 6}


class ByName(PolicyMapping):
    """Draws as Uniform does, and for all `Focal` knows looks at names."""

    def assign(self, draw):
        return draw.integers(1000)


@pytest.mark.parametrize("num_focal", [1, 3])
def test_mappings_that_ignore_names_draw_the_same_in_one_call(num_focal):
    assert ByName().reads_agents
    assert not Uniform(1000).reads_agents
    one_by_one, at_once = (Focal(r, Shared(r), num_focal).assign(draw_of(200)) for r in (ByName(), Uniform(1000)))
    np.testing.assert_array_equal(one_by_one, at_once)


@pytest.mark.parametrize(
    ("rule", "reads"),
    [
        (Uniform(2), False),
        (Weighted([1, 2]), False),
        (Fixed(1), False),
        (Fixed({"a": 1}), True),
        (ByEnvIndex(2), False),
        (Balanced(2, 2), False),
        (RoundRobin(2), False),
        (FromFunction(each_by_name), True),
        (Shared(Fixed({"a": 1})), True),
        (Shared(Uniform(2)), False),
        (Teams(Uniform(2)), True),
        (Roles({"a": Uniform(2)}), True),
        (Focal(Uniform(2), Uniform(2)), False),
        (Focal(Uniform(2), Teams(Uniform(2))), True),
    ],
)
def test_reads_agents_is_derived_from_children(rule, reads):
    assert rule.reads_agents is reads


def test_focal_inside_teams_chooses_a_focal_team():
    agents = ["red_0", "blue_0", "green_0", "red_1", "blue_1"]
    policies = Teams(Focal(LEARNER, Uniform(4))).assign(draw_of(300, agents))
    assert (policies[:, [0, 1]] == policies[:, [3, 4]]).all()
    assert (np.count_nonzero(policies[:, :3] == 9, axis=1) == 1).all()
    assert {int(seat) for seat in np.argmax(policies == 9, axis=1)} == {0, 1, 2}


def test_late_agents_without_rotation_join_the_background():
    script = [("a", "b"), ("a", "b", "c"), ()]
    env = wrap(StubParallel(script, possible_agents=None), Focal(LEARNER, Uniform(4), rotate=False), seed=0)
    env.reset()
    before = env.policy_ids
    env.step({})
    assert before["a"] == 9
    assert env.policy_ids == {**before, "c": Focal(LEARNER, Uniform(4), rotate=False).assign(draw_of(1, "abc"))[0, 2]}


def test_rotation_with_unknown_seats_raises():
    env = wrap(StubParallel(possible_agents=None), Focal(LEARNER, Uniform(4)))
    with pytest.raises(ValueError, match=r"Focal.* needs to know all seats, but the environment has no"):
        env.reset()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Focal(2, Uniform(2)), TypeError, "focal must be a PolicyMapping, got 2"),
        (lambda: Focal(Uniform(2), 2), TypeError, "background must be a PolicyMapping, got 2"),
        (lambda: Focal(Uniform(2), Uniform(2), 0), ValueError, "num_focal must be at least 1, got 0"),
        (lambda: Focal(Uniform(2), Uniform(2), 1.0), TypeError, "num_focal must be an integer, got 1.0"),
    ],
)
def test_invalid_settings_raise_at_construction(make, error, message):
    with pytest.raises(error, match=f"^{message}"):
        make()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Focal(Uniform(2), Uniform(2), 5), "num_focal must be at most the number of seats, got 5 of 4"),
        (
            Focal(Uniform(1, replace=False), Uniform(2), 2),
            "replace=False needs at least one policy per seat, got 1 policies for 2 seats",
        ),
        (
            Focal(Uniform(2), Uniform(2, replace=False)),
            "replace=False needs at least one policy per seat, got 2 policies for 3 seats",
        ),
        (Focal(Fixed({"a": 0, "b": 0, "c": 0}), Uniform(2)), "policy must hold every agent, got no policy for 'd'"),
        (Focal(Uniform(2), Fixed({"b": 0, "c": 0, "d": 0})), "policy must hold every agent, got no policy for 'a'"),
        # Only where both of x are in the background there are too few policies for them.
        (
            Focal(
                Uniform(2),
                Roles({"x": Uniform(1, replace=False), "y": Uniform(2)}, lambda a: "xyxy"["abcd".index(a)]),
                2,
            ),
            "replace=False needs at least one policy per seat, got 1 policies for 2 seats",
        ),
    ],
)
def test_agents_that_a_child_cannot_serve_raise_at_construction(rule, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        PolicyAssigner(rule, AGENTS)


def test_check_without_rotation_considers_the_first_seats_only():
    PolicyAssigner(Focal(Fixed({"a": 0}), Fixed({"b": 0, "c": 0, "d": 0}), rotate=False), AGENTS)


@pytest.mark.parametrize("part", ["focal", "background"])
def test_unserved_agent_is_found_among_many_seats(part):
    agents = list(range(40))  # 40 choose 20 are too many to go through
    blind = Fixed({agent: 0 for agent in agents if agent != 33})
    rule = Focal(blind, Uniform(2), 20) if part == "focal" else Focal(Uniform(2), blind, 20)
    with pytest.raises(ValueError, match="policy must hold every agent, got no policy for 33"):
        PolicyAssigner(rule, agents)


def test_check_of_very_many_seats_is_quick():
    agents = list(range(40))
    rule = Focal(Fixed(dict.fromkeys(agents, 9)), Fixed({agent: agent % 3 for agent in agents}), 20)
    policies = PolicyAssigner(rule, agents, seed=0).begin_episodes()[0]
    assert np.count_nonzero(policies == 9) == 20
    assert all(policy in (9, agent % 3) for agent, policy in enumerate(policies))


@pytest.mark.parametrize("rotate", [False, True])
@pytest.mark.parametrize("agents", [["a"], AGENTS])
def test_all_seats_may_be_focal(agents, rotate):
    rule = Focal(LEARNER, Uniform(4), num_focal=len(agents), rotate=rotate)
    PolicyAssigner(rule, agents)
    assert (rule.assign(draw_of(3, agents)) == 9).all()


def test_background_keeps_seat_order_for_any_number_of_seats():
    class InOrder(PolicyMapping):
        def assign(self, draw):
            return np.broadcast_to(np.arange(draw.num_seats), (draw.num_envs, draw.num_seats))

    agents = [f"agent_{i}" for i in range(40)]
    policy_ids = Focal(Fixed(1000), InOrder()).assign(Draw.at(0, agents, np.arange(20), np.zeros(20, int)))
    for row in policy_ids.tolist():
        row.remove(1000)
        assert row == list(range(39))
