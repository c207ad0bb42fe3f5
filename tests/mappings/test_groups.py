"""Groups: the team or role of each agent."""

import pytest

from pz_policymap import PolicyAssigner, Roles, Teams, Uniform
from pz_policymap.mappings.groups import group_of_each_seat, group_rule, seats_by_group


@pytest.mark.parametrize(
    ("agent", "prefix"),
    [
        ("adversary_0", "adversary"),  # mpe2
        ("leadadversary_12", "leadadversary"),
        ("red_team_3", "red_team"),
        ("alice", "alice"),
        ("player_one", "player_one"),  # no number at its end
        ("agent0", "agent"),
        ("agent-0", "agent"),
        ("agent 0", "agent"),
        ("a_1_2", "a_1"),
        ("_7", "_7"),  # nothing before the number
        ("x_", "x_"),
        ("x_-1", "x"),
        ("", ""),
    ],
)
def test_prefix_is_the_name_without_the_number_at_its_end(agent, prefix):
    assert seats_by_group("team_of", "prefix", (agent,)) == {prefix: [0]}


@pytest.mark.parametrize(
    "rule",
    [
        "prefix",
        {"b_0": "b", "a_0": "a", "b_1": "b", "not there": "c"},
        lambda agent: agent[0],
    ],
    ids=["prefix", "dict", "function"],
)
def test_groups_come_in_the_order_of_their_first_seat(rule):
    groups = seats_by_group("team_of", group_rule("team_of", rule), ("b_0", "a_0", "b_1"))
    assert list(groups.items()) == [("b", [0, 2]), ("a", [1])]


def test_rule_as_dict_or_function_accepts_any_hashable_agents():
    assert seats_by_group("team_of", {(0, 1): 5, 7: 5}, ((0, 1), 7)) == {5: [0, 1]}
    assert seats_by_group("team_of", lambda agent: agent % 2, (0, 1, 2)) == {0: [0, 2], 1: [1]}


def test_group_dict_is_copied():
    teams = {"a": 0}
    rule = group_rule("team_of", teams)
    teams["a"] = 1
    assert rule == {"a": 0}


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        ("suffix", ValueError, "team_of must be a dict from agent to group, a function .*, or 'prefix', got 'suffix'"),
        (None, TypeError, "team_of must be a dict .* got None"),
        (3, TypeError, "team_of must be a dict .* got 3"),
        (["a", "b"], TypeError, r"team_of must be a dict .* got \['a', 'b'\]"),
    ],
)
def test_invalid_group_rule_raises(rule, error, message):
    with pytest.raises(error, match=f"^{message}"):
        group_rule("team_of", rule)


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        ({"b": 0}, ValueError, r"role_of must name a group for every agent, got none for 'a' in \{'b': 0\}"),
        ({"a": None}, ValueError, "role_of must name a group for every agent, got none for 'a'"),
        (lambda agent: None, ValueError, "role_of must return a group for every agent, got None for 'a'"),
        (
            lambda agent: agent["x"],
            ValueError,
            "role_of must be a function of an agent, but it failed for 'a': TypeErr",
        ),
        (lambda: 0, ValueError, "role_of must be a function of an agent, but it failed for 'a'"),
        (lambda agent: [agent], TypeError, r"role_of must give groups that can be keys, got \['a'\] for agent 'a'"),
        ({"a": ["x"]}, TypeError, r"role_of must give groups that can be keys, got \['x'\] for agent 'a'"),
    ],
)
def test_agent_without_a_group_raises(rule, error, message):
    with pytest.raises(error, match=f"^{message}"):
        seats_by_group("role_of", rule, ("a",))


def test_prefix_of_an_agent_that_is_not_a_string_raises():
    with pytest.raises(
        TypeError, match="role_of='prefix' needs agents that are strings, got 0; pass a dict or a funct"
    ):
        seats_by_group("role_of", "prefix", (0, 1))


@pytest.mark.parametrize(
    ("agents", "unnumbered"),
    [
        (("alice", "bob"), "'alice', 'bob'"),
        (("red_0", "red_1", "blue_a", "blue_b"), "'blue_a', 'blue_b'"),
        (("red_0", "red_1", "keeper"), "'keeper'"),
    ],
)
def test_prefix_of_names_without_a_number_at_their_end_raises(agents, unnumbered):
    message = rf"team_of='prefix' needs names with a number at their end, .* got \[{unnumbered}\]; pass a dict"
    with pytest.raises(ValueError, match=message):
        seats_by_group("team_of", "prefix", agents)
    with pytest.raises(ValueError, match=message):
        PolicyAssigner(Teams(Uniform(4)), agents)


@pytest.mark.parametrize("mark", ["_", "", "-", " "])
def test_prefix_with_any_separator_groups_by_name(mark):
    agents = tuple(f"{team}{mark}{number}" for team, number in (("red", 0), ("red", 1), ("blue", 0)))
    assert seats_by_group("team_of", "prefix", agents) == {"red": [0, 1], "blue": [2]}
    assert len(set(PolicyAssigner(Teams(Uniform(1000)), agents, seed=0).begin_episodes()[0].tolist())) == 2
    roles = Roles({"red": Uniform([1, 2]), "blue": Uniform([3])})
    assert PolicyAssigner(roles, agents, seed=0).begin_episodes()[0, 2] == 3


def test_prefix_of_known_names_needs_no_numbers():
    assert seats_by_group("role_of", "prefix", ("red", "blue"), known=("red", "blue")) == {"red": [0], "blue": [1]}


def test_group_of_each_seat_keeps_the_order_of_the_seats():
    agents = ("b_0", "a_0", "b_1", "a_1")
    assert group_of_each_seat("team_of", "prefix", agents) == ["b", "a", "b", "a"]
    with pytest.raises(ValueError, match="team_of must name a group for every agent, got none for 'a_0'"):
        group_of_each_seat("team_of", {"b_0": 1}, agents)
