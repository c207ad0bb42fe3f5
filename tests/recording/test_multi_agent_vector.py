"""`record_results` around a `PolicyMapMultiAgentVector`: one episode per environment."""

import copy

import numpy as np
import pytest

import pz_policymap as pm
from tests.simulators import AGENTS, ScriptedSimulator


def everyone(*envs):
    return [(env, agent) for env in envs for agent in AGENTS]


def recorded(
    num_envs, ends=(), sinks=(), flags="agents", mode="SameStep", mapping=10**6, infos=None, score=None, **settings
):
    env = ScriptedSimulator(num_envs, ends, flags, mode, settings.pop("convert", np.array), infos)
    env = pm.wrap(env, mapping, **{"seed": 0, "resample_every": 1, **settings})
    played = []
    return pm.record_results(env, played.append, *sinks, score=score), played


def policies(env_index, episode):
    return tuple(pm.assignments(10**6, AGENTS, seed=0, env_index=env_index, episode=episode, resample_every=1).tolist())


@pytest.mark.parametrize("mode", ["SameStep", "NextStep", "Disabled"])
@pytest.mark.parametrize("flags", ["agents", "all", "array", "done"])
def test_episode_is_recorded_with_its_policies_and_returns_in_every_mode(mode, flags):
    env, played = recorded(2, [[], [1], [], []], flags=flags, mode=mode)
    env.reset()
    env.step(0)
    env.step(0)
    assert [(e.policies, e.returns, e.lengths) for e in played] == [(policies(1, 0), (4.0,) * 3, (2,) * 3)]
    assert played[0].agents == tuple(AGENTS)
    if mode == "Disabled":
        env.reset_at(1)
    env.env.env.ends = [[], [], [], [], [1]]
    for _ in range(3):
        env.step(0)
    steps = 2 if mode == "NextStep" else 3
    assert [(e.policies, e.returns) for e in played[1:]] == [(policies(1, 1), (2.0 * steps,) * 3)]


def test_agent_that_ends_early_stops_its_length_but_not_its_return():
    env, played = recorded(1, [[(0, "red")], [], [(0, "blue"), (0, "green")]])
    env.reset()
    for _ in range(3):
        env.step(0)
    assert [(e.lengths, e.returns) for e in played] == [((1, 3, 3), (3.0, 3.0, 3.0))]


def test_nan_reward_of_a_dead_agent_is_zero_and_of_a_live_one_raises():
    env, played = recorded(1, [[(0, "red")], [(0, "blue"), (0, "green")], everyone(0)])
    env.reset()
    env.step(0)
    step = env.env.env.step
    nan = {agent: np.array([np.nan if agent == "red" else 1.0]) for agent in AGENTS}
    env.env.env.step = lambda actions: (
        step(actions)[0],
        nan,
        *step.__self__.__class__.step(step.__self__, actions)[2:],
    )
    env.env.env.time = 0
    env.env.env.ends = [[], [(0, "blue"), (0, "green")], [], everyone(0)]
    env.step(0)
    assert [e.returns for e in played] == [(1.0, 2.0, 2.0)]
    with pytest.raises(ValueError, match=r"rewards must be finite, got the sum nan for agent 'red'"):
        env.step(0)


def test_agents_without_rewards_earn_nothing():
    env, played = recorded(1, [everyone(0)])
    env.reset()
    step = env.env.env.step
    env.env.env.step = lambda actions: [
        {"red": part["red"]} if place == 1 else part for place, part in enumerate(step(actions))
    ]
    env.step(0)
    assert [e.returns for e in played] == [(1.0, 0.0, 0.0)]


def test_interrupted_episodes_are_not_recorded():
    env, played = recorded(2, [[], [], [0, 1]], flags="array")
    env.reset()
    env.step(0)
    env.reset()
    env.step(0)
    env.step(0)
    assert [e.lengths for e in played] == [(2, 2, 2)] * 2


def test_agents_that_may_respawn_are_recorded_when_a_reset_confirms_the_end():
    env, played = recorded(2, [everyone(0), everyone(1)], mode=None, autoreset_mode="Disabled")
    env.reset()
    env.step(0)
    env.step(0)
    assert not played
    env.reset(options={"reset_mask": np.array([True, False])})
    assert [(e.policies, e.returns) for e in played] == [(policies(0, 0), (2.0,) * 3)]
    env.step(0)
    assert env.end_episodes([1]).tolist() == [list(policies(0, 1)), list(policies(1, 1))]
    assert [(e.policies, e.returns) for e in played[1:]] == [(policies(1, 0), (6.0,) * 3)]


def test_episodes_of_fixed_length_are_recorded_without_flags():
    env, played = recorded(2, episode_length=2)
    env.reset()
    for _ in range(5):
        env.step(0)
    assert [e.lengths for e in played] == [(2, 2, 2)] * 4
    assert [e.policies for e in played[2:]] == [policies(0, 1), policies(1, 1)]


def test_score_sees_the_terminal_infos():
    infos = {"red": {"won": np.array([3, 4]), "log": 0.5}, "blue": {"won": np.array([1, 9])}}
    seen = []

    def score(returns, infos):
        seen.append(infos)
        return {agent: info.get("won", 0) for agent, info in infos.items()}

    env, played = recorded(2, [everyone(1)], infos=infos, score=score)
    env.reset()
    env.step(0)
    assert [e.scores for e in played] == [(4.0, 9.0, 0.0)]
    assert seen[0]["red"]["log"] == 0.5


def test_payoff_of_teams_is_that_of_the_returns():
    payoff = pm.Payoff(num_policies=2)
    env, _ = recorded(1, [everyone(0)], sinks=[payoff], mapping=pm.Fixed({"red": 0, "blue": 1, "green": 1}))
    env.reset()
    env.step(0)
    assert payoff.games.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64"])
def test_tensors_of_any_dtype_equal_arrays(dtype):
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype)

    def convert(array):
        return torch.as_tensor(array) if array.dtype == bool else torch.as_tensor(array).to(kind)

    ends = [[(0, "red")], everyone(1), [(0, "blue"), (0, "green")]]
    env, played = recorded(2, ends, convert=convert)
    twin, expected = recorded(2, ends)
    for one in (env, twin):
        one.reset()
        for _ in range(3):
            one.step(0)
    assert played == expected


def test_rewards_with_gradients_are_summed_without_them():
    torch = pytest.importorskip("torch")
    env, played = recorded(
        1,
        [everyone(0)],
        convert=lambda a: torch.as_tensor(a) if a.dtype == bool else torch.tensor(a, requires_grad=True),
    )
    env.reset()
    env.step(0)
    assert [e.returns for e in played] == [(1.0, 1.0, 1.0)]


def test_copy_continues_as_the_original():
    env, played = recorded(2, [[], everyone(0), everyone(0, 1)])
    env.reset()
    env.step(0)
    twin = copy.deepcopy(env)
    for one in (twin, env):  # a copy of `played.append` appends to the same list
        one.step(0)
        one.step(0)
    assert len(played) == 6
    assert played[:3] == played[3:]


def test_attributes_are_those_of_the_wrapper_inside():
    env, _ = recorded(2)
    env.reset()
    assert env.policy_ids is env.env.policy_ids
    assert repr(env).startswith("<RecordResultsMultiAgentVector<<PolicyMapMultiAgentVector<")


def test_environment_without_a_policy_wrapper_is_refused():
    with pytest.raises(ValueError, match="env must be wrapped with a policy wrapper first"):
        pm.record_results(ScriptedSimulator(), print)


def test_info_key_of_the_wrapper_inside_is_read():
    env = pm.record_results(pm.wrap(ScriptedSimulator(), 2, info_key="policy"), print)
    _, infos = env.reset()
    assert "policy" in infos["red"]


def test_other_info_key_without_tags_is_refused():
    env = pm.record_results(pm.wrap(ScriptedSimulator(), 2), print, info_key="policy")
    with pytest.raises(ValueError, match="infos of agent 'red' must have the key 'policy'"):
        env.reset()


def test_sinks_shared_with_a_recorder_inside_are_refused():
    payoff = pm.Payoff(2)
    with pytest.raises(ValueError, match="sinks must not"):
        pm.record_results(pm.record_results(pm.wrap(ScriptedSimulator(), 2), payoff), payoff)


def test_score_sees_the_final_infos_of_the_simulator_where_it_has_them():
    infos = {agent: {"won": np.zeros(2), "final_info": {"won": np.array([5, 6])}} for agent in AGENTS}
    env, played = recorded(
        2, [everyone(1)], infos=infos, score=lambda returns, infos: {a: infos[a]["won"] for a in infos}
    )
    env.reset()
    env.step(0)
    assert [e.scores for e in played] == [(6.0, 6.0, 6.0)]


class Truncating:
    """A wrapper between wrapper and recorder that truncates every episode at its first step."""

    def __init__(self, env):
        self.env = env

    def __getattr__(self, name):
        return getattr(self.env, name)

    def step(self, actions):
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        return observations, rewards, terminations, {a: flags | True for a, flags in truncations.items()}, infos


def test_flags_changed_by_a_wrapper_in_between_are_read():
    played = []
    env = Truncating(pm.wrap(ScriptedSimulator(2, mode="Disabled"), 5, seed=0))
    env = pm.record_results(env, played.append)
    env.reset()
    env.step(0)
    assert [e.lengths for e in played] == [(1, 1, 1)] * 2


def test_recorder_without_a_sink_raises():
    with pytest.raises(ValueError, match="sinks must hold at least one sink"):
        pm.record_results(pm.wrap(ScriptedSimulator(2, [], "agents", "SameStep", np.array, None), 4, seed=0))


def test_recorder_attached_mid_run_records_from_the_next_episode_of_each_environment():
    ends = [[(0, "red")], [(1, "red")], [(0, "blue"), (0, "green")], [(0, "red")], [(1, "blue"), (1, "green")]]
    env = pm.wrap(ScriptedSimulator(2, [*ends, [(0, "blue"), (0, "green")], everyone(1)]), 10**6, seed=0)
    env.reset()
    env.step(0)
    env.step(0)
    played = []
    env = pm.record_results(env, played.append)
    for _ in range(5):
        env.step(0)
    assert [(e.lengths, e.returns) for e in played] == [((1, 3, 3), (3.0,) * 3), ((2, 2, 2), (4.0,) * 3)]


def test_recorder_attached_mid_run_counts_the_steps_of_fixed_length_episodes():
    env = pm.wrap(ScriptedSimulator(1), 4, seed=0, episode_length=3)
    env.reset()
    env.step(0)
    played = []
    env = pm.record_results(env, played.append)
    for expected in (0, 0, 0, 0, 1):
        env.step(0)
        assert len(played) == expected
    assert played[0].lengths == (3, 3, 3)


def test_recorder_attached_after_an_end_skips_the_reset_step_in_next_step_mode():
    env = pm.wrap(ScriptedSimulator(1, [everyone(0), [], [], everyone(0)], mode="NextStep"), 4, seed=0)
    env.reset()
    env.step(0)
    played = []
    env = pm.record_results(env, played.append)
    for _ in range(3):
        env.step(0)
    assert [e.lengths for e in played] == [(2, 2, 2)]


def with_rewards(rewards, num_envs=2, ends=()):
    """Returns a recorder that has been reset, whose simulator pays these rewards at each step, and its episodes."""
    env, played = recorded(num_envs, ends)
    env.reset()
    step = env.env.env.step

    def paying(actions):
        observations, _, *rest = step(actions)
        return observations, next(rewards), *rest

    env.env.env.step = paying
    return env, played


@pytest.mark.parametrize(
    ("rewards", "error", "match"),
    [
        (np.ones(2), TypeError, "rewards must be a dict from agent to array, got array"),
        (1.0, TypeError, "rewards must be a dict from agent to array, got 1.0"),
        ({"red": np.ones(2), "blue": np.ones(3)}, ValueError, r"rewards\['blue'\] must have shape \(2,\), got \(3,\)"),
        ({"red": np.ones((2, 2))}, ValueError, r"rewards\['red'\] must have shape \(2,\), got \(2, 2\)"),
        ({"red": 1.0}, ValueError, r"rewards\['red'\] must have shape \(2,\), got \(\)"),
    ],
)
def test_rewards_that_are_not_one_array_per_agent_are_refused(rewards, error, match):
    env, _ = with_rewards(iter([rewards]))
    with pytest.raises(error, match=match):
        env.step(0)


def test_rewards_as_columns_or_lists_are_read():
    rewards = {"red": np.ones((2, 1)), "blue": [1, 2], "green": np.ones(2)}
    env, played = with_rewards(iter([rewards]), ends=[everyone(1)])
    env.step(0)
    assert [e.returns for e in played] == [(1.0, 2.0, 1.0)]


@pytest.mark.parametrize("library", ["numpy", "torch", "jax.numpy"])
def test_nan_reward_of_a_dead_agent_is_zero_in_every_library(library):
    array = pytest.importorskip(library)
    first = {agent: array.ones(1) for agent in AGENTS}
    second = first | {"red": array.full((1,), float("nan"))}
    env, played = with_rewards(iter([first, second]), 1, [[(0, "red")], [(0, "blue"), (0, "green")]])
    env.step(0)
    env.step(0)
    assert [e.returns for e in played] == [(1.0, 2.0, 2.0)]
