"""`PolicyGroups` and `act`: every row reaches the policy of its id, and no other."""

import operator
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pz_policymap as pm
from pz_policymap import PolicyGroups, act

TYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def tags(**policies):
    return {agent: {"policy_id": policy} for agent, policy in policies.items()}


class Both(NamedTuple):
    here: object
    there: object


@st.composite
def grouped(draw):
    """Policy ids of any type, shape and size of population, and a mask or None."""
    dtype = draw(st.sampled_from(TYPES))
    highest = min(np.iinfo(dtype).max, draw(st.sampled_from([3, 254, 255, 65534, 65535, 2**31 - 1])))
    few = st.integers(0 if np.dtype(dtype).kind == "u" else -1, min(2, highest))
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5))
    ids = draw(hnp.arrays(dtype, shape, elements=few | st.integers(0, highest)))
    return ids, draw(st.none() | hnp.arrays(np.bool_, shape))


def rows_by_masks(ids, mask):
    """The rows of each policy as a person finds them: one comparison per policy."""
    flat = ids.reshape(-1)
    acting = np.ones(flat.shape, bool) if mask is None else mask.reshape(-1)
    policies = sorted({int(policy) for policy in flat[acting] if int(policy) != -1})
    return {policy: np.flatnonzero((flat == policy) & acting).tolist() for policy in policies}


@settings(deadline=None)
@given(grouped())
def test_groups_are_those_of_a_loop_of_masks(case):
    groups, expected = PolicyGroups(*case), rows_by_masks(*case)
    found = [(policy, rows.tolist()) for policy, rows in groups]
    assert found == list(expected.items())
    assert groups.policies == tuple(expected)
    assert len(groups) == len(expected)
    assert groups.num_rows == case[0].size


@settings(deadline=None)
@given(grouped())
def test_every_active_row_has_one_policy(case):
    expected = rows_by_masks(*case)
    served = [row for _, rows in PolicyGroups(*case) for row in rows.tolist()]
    assert len(set(served)) == len(served)
    assert sorted(served) == sorted(row for rows in expected.values() for row in rows)


@pytest.mark.parametrize("highest", [254, 255, 256, 65534, 65535, 65536, 2**31 - 1])
def test_inactive_rows_differ_from_every_policy(highest):
    ids = np.array([highest, -1, 0, highest - 1, -1, highest])
    assert {policy: rows.tolist() for policy, rows in PolicyGroups(ids)} == {0: [2], highest - 1: [3], highest: [0, 5]}


def batch_of(num_rows):
    numbers = np.arange(1.0, num_rows + 1)
    return {"a": numbers, "b": (np.stack([numbers, -numbers], axis=1), [Both(numbers.astype(int), numbers > 3)])}


@settings(deadline=None)
@given(grouped())
def test_scatter_is_the_inverse_of_gather(case):
    groups = PolicyGroups(*case)
    batch = batch_of(groups.num_rows)
    served = np.zeros(groups.num_rows, bool)
    for _, rows in groups:
        served[rows] = True
    back = groups.scatter(groups.gather(batch))
    if not served.any():
        assert back is None
    else:
        expected = {
            "a": np.where(served, batch["a"], 0),
            "b": (batch["b"][0] * served[:, None], [Both(*(leaf * served for leaf in batch["b"][1][0]))]),
        }
        np.testing.assert_equal(back, expected)
        assert type(back["b"][1][0]) is Both
        assert back["b"][1][0].here.dtype == batch["b"][1][0].here.dtype
        assert back["b"][1][0].there.dtype == np.bool_


@settings(deadline=None)
@given(grouped())
def test_gather_is_indexing_with_the_rows(case):
    groups = PolicyGroups(*case)
    batch = batch_of(groups.num_rows)
    gathered = groups.gather(batch)
    assert list(gathered) == list(groups.policies)
    for policy, rows in groups:
        np.testing.assert_equal(gathered[policy]["b"][0], batch["b"][0][rows])
        np.testing.assert_equal(gathered[policy]["b"][1][0].here, batch["b"][1][0].here[rows])


@settings(deadline=None)
@given(grouped())
def test_act_equals_a_loop_of_masks(case):
    ids, mask = case
    groups = PolicyGroups(ids, mask)
    observations = np.arange(ids.size) * 1.5
    calls = []

    class AnyPolicy(dict):
        def __contains__(self, policy):
            return True

        def __missing__(self, policy):
            return lambda rows: calls.append(policy) or rows + policy

    actions = groups.act(AnyPolicy(), observations)
    by_hand = np.zeros(ids.size)
    for policy, rows in rows_by_masks(ids, mask).items():
        by_hand[rows] = observations[rows] + policy
    assert calls == list(rows_by_masks(ids, mask))
    np.testing.assert_equal(actions, by_hand if calls else None)


def test_ids_of_an_assigner_are_flattened_by_environment():
    assigner = pm.PolicyAssigner(pm.Fixed({"a": 1, "b": 0}), ["a", "b"], num_envs=3, seed=0)
    groups = PolicyGroups(assigner.begin_episodes())
    assert {policy: rows.tolist() for policy, rows in groups} == {0: [1, 3, 5], 1: [0, 2, 4]}


@pytest.mark.parametrize(
    ("policies", "missing"),
    [
        ({0: abs, 1: abs}, 2),
        ([abs, abs], 2),
        ((), 0),
        ({1: abs, 2: abs}, 0),
    ],
)
@pytest.mark.parametrize(
    "serve",
    [
        lambda policies: PolicyGroups([2, 0, 1]).act(policies, np.zeros(3)),
        lambda policies: act(policies, dict.fromkeys("abc", 0), tags(a=2, b=0, c=1)),
    ],
    ids=["batch", "dicts"],
)
def test_a_missing_policy_is_named_before_anything_acts(policies, missing, serve):
    called = []
    given = dict.fromkeys(policies, called.append) if isinstance(policies, dict) else [called.append] * len(policies)
    with pytest.raises(KeyError, match=f"got none for policy {missing} in "):
        serve(given)
    assert called == []


def test_a_policy_without_rows_is_not_called():
    called = []
    policies = [called.append, np.negative, called.append]
    assert PolicyGroups([1, 1]).act(policies, np.array([1, 2])).tolist() == [-1, -2]
    assert act(policies, {"a": 1}, {"a": {"policy_id": 1}}) == {"a": -1}
    assert called == []


def test_act_on_an_empty_batch_returns_none():
    groups = PolicyGroups([])
    assert (len(groups), list(groups), groups.act([], np.zeros((0, 3)))) == (0, [], None)


@pytest.mark.parametrize(
    ("ids", "mask", "error", "message"),
    [
        ([0.0, 1.0], None, TypeError, "policy_ids must be integers, got float64"),
        ([True, False], None, TypeError, "policy_ids must be integers, got bool"),
        (["a"], None, TypeError, "policy_ids must be integers"),
        ([0, -2], None, ValueError, "or -1 for an inactive row, got -2"),
        (
            [0, 2**31],
            None,
            ValueError,
            "policy_ids must be from 0 to 2147483647, or -1 for an inactive row, got 2147483648",
        ),
        ([0, 1], [1, 0], TypeError, "mask must be booleans"),
        ([0, 1], [True], ValueError, r"mask must have the shape of policy_ids, \(2,\), got \(1,\)"),
        ([[0, 1]], [True, True], ValueError, r"mask must have the shape of policy_ids, \(1, 2\), got \(2,\)"),
    ],
)
def test_invalid_policy_ids_raise(ids, mask, error, message):
    with pytest.raises(error, match=message):
        PolicyGroups(ids, mask)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (lambda rows: rows[:1], r"policy 1 must return one row per row of its batch: expected an array of 2 rows"),
        (lambda rows: [0, 0], "policy 1 must return one row per row of its batch: .*a list or a tuple is structure"),
        (lambda rows: None, "policy 1 must return one row per row of its batch"),
        (lambda rows: {"x": rows}, r"policies \[0, 1\] do not fit together: structures differ: an array and a dict"),
        (lambda rows: np.zeros((2, 3)), r"policies \[0, 1\] do not fit together: rows differ in shape"),
    ],
)
def test_actions_of_wrong_shape_name_the_policy(actions, message):
    with pytest.raises(ValueError, match=message):
        PolicyGroups([0, 1, 1]).act([np.negative, actions], np.arange(3))


def test_batches_have_one_row_per_agent():
    with pytest.raises(ValueError, match=r"expected an array of 3 rows, got one of shape \(4, 2\)"):
        PolicyGroups([0, 1, 1]).gather({"x": np.zeros((4, 2))})


def test_a_policy_without_a_batch_is_named():
    with pytest.raises(KeyError, match="batches must hold every policy that acts, got none for policy 1"):
        PolicyGroups([0, 1]).scatter({0: np.zeros(1)})


# The dicts of PettingZoo


class Recorder:
    """Acts with its own number and keeps what it saw."""

    def __init__(self, number=0):
        self.number, self.seen = number, []

    def __call__(self, observations):
        self.seen.append(observations)
        leaf = observations
        while isinstance(leaf, (dict, tuple)):
            leaf = next(iter(leaf.values())) if isinstance(leaf, dict) else leaf[0]
        return np.full(len(leaf), self.number)


def test_agents_of_one_policy_are_stacked_into_one_call():
    policies = {0: Recorder(0), 2: Recorder(2)}
    observations = {agent: np.full(2, i) for i, agent in enumerate("abc")}
    actions = act(policies, observations, tags(a=2, b=0, c=2))
    assert actions == {"a": 2, "b": 0, "c": 2}
    assert list(actions) == ["a", "b", "c"]
    np.testing.assert_equal(policies[2].seen, [[[0, 0], [2, 2]]])
    np.testing.assert_equal(policies[0].seen, [[[1, 1]]])


def test_policies_are_called_in_ascending_order():
    called = []
    policies = [lambda observations, i=i: called.append(i) or observations for i in range(3)]
    act(policies, dict.fromkeys("abcd", 0), tags(a=2, b=0, c=1, d=0))
    PolicyGroups([2, 0, 1, 0]).act(policies, np.zeros(4))
    assert called == [0, 1, 2, 0, 1, 2]


def test_nested_observations_are_stacked_place_by_place():
    policy = Recorder()
    observations = {
        agent: {"observation": (np.full(2, i), i), "action_mask": np.ones(3, np.int8)} for i, agent in enumerate("ab")
    }
    act([policy], observations, tags(a=0, b=0))
    (batch,) = policy.seen
    np.testing.assert_equal(batch["observation"], (np.array([[0, 0], [1, 1]]), np.array([0, 1])))
    np.testing.assert_equal(batch["action_mask"], np.ones((2, 3), np.int8))


@pytest.mark.parametrize(
    "observations",
    [
        {"a": np.zeros(2), "b": np.zeros(3), "c": np.zeros(2)},
        {"a": np.zeros(2), "b": {"x": np.zeros(2)}, "c": np.zeros(2)},
        {"a": np.zeros(2), "b": np.zeros(2, np.float32), "c": np.zeros(2)},
    ],
)
def test_observations_that_do_not_stack_are_served_one_by_one(observations):
    policy = Recorder(7)
    assert act([policy], observations, tags(a=0, b=0, c=0)) == {"a": 7, "b": 7, "c": 7}
    assert len(policy.seen) == 3
    for agent, seen in zip("abc", policy.seen, strict=True):
        expected = observations[agent]
        np.testing.assert_equal(seen, {"x": expected["x"][None]} if isinstance(expected, dict) else expected[None])
        assert agent != "b" or isinstance(expected, dict) or seen.dtype == expected.dtype


def test_each_agent_gets_its_row_of_a_nested_action():
    def policy(observations):
        return {"move": observations * 10, "say": (observations.sum(axis=1),)}

    observations = {"a": np.array([1, 2]), "b": np.array([3, 4])}
    np.testing.assert_equal(
        act([policy], observations, tags(a=0, b=0)),
        {"a": {"move": np.array([10, 20]), "say": (3,)}, "b": {"move": np.array([30, 40]), "say": (7,)}},
    )


def with_infos(observations, infos):
    return np.array([info["bonus"] for info in infos])


def with_mask(observations, action_mask):
    return np.argmax(action_mask, axis=1)


def with_all(observations, *, infos, action_mask):
    return np.argmax(action_mask, axis=1) + [info["bonus"] for info in infos]


class WithInfos:
    def __call__(self, observations, infos):
        return with_infos(observations, infos)


class Module:
    """As torch makes them: what is called hides the signature of `forward`."""

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def forward(self, observations, action_mask=None):
        return with_mask(observations, action_mask)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (with_infos, [10, 20]),
        (with_mask, [1, 2]),
        (with_all, [11, 22]),
        (WithInfos(), [10, 20]),
        (Module(), [1, 2]),
        (lambda observations: observations["observation"], [5, 6]),
        (lambda observations, **others: observations["observation"] + 100 * len(others), [5, 6]),
        (operator.itemgetter("observation"), [5, 6]),
    ],
)
@pytest.mark.parametrize("place", ["info", "observation"])
def test_infos_and_masks_reach_the_policies_that_name_them(policy, expected, place):
    infos = {"a": {"policy_id": 0, "bonus": 10}, "b": {"policy_id": 0, "bonus": 20}}
    observations = {"a": {"observation": 5}, "b": {"observation": 6}}
    for agent, mask in (("a", np.array([0, 1, 0])), ("b", np.array([0, 0, 1]))):
        (infos if place == "info" else observations)[agent]["action_mask"] = mask
    assert list(act([policy], observations, infos).values()) == expected


def test_a_missing_mask_is_passed_as_none():
    def policy(observations, action_mask):
        assert action_mask is None
        return observations

    assert act([policy], {"a": 1, "b": 2}, tags(a=0, b=0)) == {"a": 1, "b": 2}


def test_agents_with_and_without_masks_are_called_one_by_one():
    seen = []

    def policy(observations, action_mask):
        seen.append(None if action_mask is None else action_mask.tolist())
        return observations

    infos = tags(a=0, b=0)
    infos["b"]["action_mask"] = np.array([1, 0])
    act([policy], {"a": 1, "b": 2}, infos)
    assert seen == [None, [[1, 0]]]


def test_agents_that_have_ended_do_not_act():
    observations = dict.fromkeys("abc", 0)
    assert list(act([Recorder()], observations, tags(a=0, b=0, c=0), agents=["c", "a"])) == ["c", "a"]


def test_an_agent_with_policy_minus_one_does_not_act():
    assert act([Recorder()], {"a": 0, "b": 0}, tags(a=-1, b=0)) == {"b": 0}


@pytest.mark.parametrize(
    ("observations", "infos", "message"),
    [
        ({"a": 0}, {}, "infos must hold every agent that acts, got none for 'a'"),
        ({"a": 0}, {"a": {}}, "infos\\['a'\\] must have the key 'policy_id'"),
        ({}, {"a": {"policy_id": 0}}, "observations must hold every agent that acts, got none for 'a'"),
    ],
)
def test_an_agent_without_observation_info_or_tag_is_named(observations, infos, message):
    with pytest.raises(KeyError, match=message):
        act([Recorder()], observations, infos, agents=["a"])


@pytest.mark.parametrize(("tag", "error"), [(-2, ValueError), (0.0, TypeError), (True, TypeError), ("0", TypeError)])
def test_an_invalid_tag_raises(tag, error):
    with pytest.raises(error, match=r"infos\['a'\]\['policy_id'\]"):
        act([Recorder()], {"a": 0}, {"a": {"policy_id": tag}})


def test_a_tag_may_have_another_name():
    assert act([Recorder(3)], {"a": 0}, {"a": {"who": np.int64(0)}}, info_key="who") == {"a": 3}


def test_actions_must_have_one_row_per_agent():
    with pytest.raises(ValueError, match="policy 0 must return one row per row of its batch: expected an array of 2"):
        act([lambda observations: np.zeros(3)], {"a": 0, "b": 0}, tags(a=0, b=0))


def test_a_game_is_played_to_its_end():
    from mpe2 import simple_spread_v3

    env = pm.wrap(simple_spread_v3.parallel_env(max_cycles=5), 3, seed=0)
    observations, infos = env.reset(seed=0)
    policies = [Recorder(i) for i in range(3)]
    while env.agents:
        actions = act(policies, observations, infos, env.agents)
        assert actions == env.policy_ids
        observations, _, _, _, infos = env.step(actions)


def test_a_turn_based_game_with_masks_is_played_to_its_end():
    from pettingzoo.classic import tictactoe_v3

    env = pm.wrap(tictactoe_v3.env(), 2, seed=0)
    env.reset(seed=0)
    for agent in env.agent_iter():
        observation, _, terminated, truncated, info = env.last()
        over = terminated or truncated
        env.step(None if over else int(act([with_mask, with_mask], {agent: observation}, {agent: info})[agent]))
    assert not env.agents


# Torch


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@settings(deadline=None)
@given(grouped())
def test_tensors_are_served_as_arrays_are(case):
    torch = pytest.importorskip("torch")
    groups = PolicyGroups(*case)
    batch = {"o": np.arange(groups.num_rows * 2.0).reshape(-1, 2)}
    tensors = {"o": torch.tensor(batch["o"])}
    for policy, gathered in groups.gather(tensors).items():
        np.testing.assert_equal(gathered["o"].numpy(), groups.gather(batch)[policy]["o"])
    back = groups.scatter(groups.gather(tensors))
    expected = groups.scatter(groups.gather(batch))
    assert (back is None) == (expected is None)
    if back is not None:
        np.testing.assert_equal(back["o"].numpy(), expected["o"])


def test_ids_and_masks_may_be_tensors(torch):
    groups = PolicyGroups(torch.tensor([[1, 0], [1, 1]]), mask=torch.tensor([[True, True], [False, True]]))
    assert {policy: rows.tolist() for policy, rows in groups} == {0: [1], 1: [0, 3]}


def test_rows_index_tensors(torch):
    observations = torch.arange(4)
    assert [observations[rows].tolist() for _, rows in PolicyGroups([1, 0, 1, 1])] == [[1], [0, 2, 3]]


def test_gradients_reach_every_policy_through_a_mixed_batch(torch):
    networks = [torch.nn.Linear(3, 2) for _ in range(2)]
    observations = torch.rand(4, 3)
    actions = PolicyGroups([1, 0, -1, 1]).act(networks, observations)
    by_hand = [networks[1](observations[0]), networks[0](observations[1]), torch.zeros(2), networks[1](observations[3])]
    torch.testing.assert_close(actions, torch.stack(by_hand))
    actions.sum().backward()
    assert networks[0].bias.grad.tolist() == [1.0, 1.0]
    assert networks[1].bias.grad.tolist() == [2.0, 2.0]


def test_arrays_and_tensors_can_be_mixed(torch):
    actions = PolicyGroups([0, 1, 0]).act([lambda o: o * 2, lambda o: o.numpy() + 0.5], torch.tensor([1.0, 2.0, 3.0]))
    assert torch.is_tensor(actions)
    assert actions.tolist() == [2.0, 2.5, 6.0]


def test_batches_stay_on_their_device(torch):
    # The meta device holds shapes alone, and refuses whatever lies elsewhere: as good as a GPU here.
    observations = {"o": torch.zeros(3, 2, device="meta")}
    groups = PolicyGroups([0, 1, 0])
    assert {policy: tuple(batch["o"].shape) for policy, batch in groups.gather(observations).items()} == {
        0: (2, 2),
        1: (1, 2),
    }
    actions = groups.act([lambda o: o["o"] + 1, lambda o: o["o"] * 2], observations)
    assert (actions.device.type, tuple(actions.shape)) == ("meta", (3, 2))


def test_dicts_of_tensors_are_stacked_and_given_back_as_tensors(torch):
    network = torch.nn.Linear(2, 2)
    observations = {"a": torch.ones(2), "b": torch.zeros(2)}
    actions = act([network], observations, tags(a=0, b=0))
    torch.testing.assert_close(actions["a"], network(torch.ones(2)))
    torch.testing.assert_close(actions["b"], network(torch.zeros(2)))


def test_a_torch_module_receives_the_parameters_of_its_forward(torch):
    class Network(torch.nn.Module):
        def forward(self, observations, action_mask):
            return torch.as_tensor(action_mask).argmax(1)

    infos = tags(a=0)
    infos["a"]["action_mask"] = np.array([0, 0, 1])
    assert act([Network()], {"a": torch.zeros(2)}, infos)["a"] == 2


def test_torch_is_not_imported_for_numpy_batches():
    code = (
        "import sys, numpy as np, pz_policymap as pm\n"
        "pm.PolicyGroups([0, 1]).act([abs, abs], np.zeros(2))\n"
        "pm.act([abs], {'a': 0}, {'a': {'policy_id': 0}})\n"
        "pm.RecurrentState(1, [0.0])\n"
        "print(sorted({'torch', 'gymnasium', 'pettingzoo'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_repr_shows_rows_and_policies():
    assert repr(PolicyGroups([[2, 0], [2, -1]])) == "PolicyGroups(num_rows=4, policies=[0, 2])"
