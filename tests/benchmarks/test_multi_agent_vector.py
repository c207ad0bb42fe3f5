"""Cost of the tags in batched multi-agent simulators, and of many torch policies in one batch."""

from itertools import cycle

import numpy as np
import pytest

from pz_policymap import PolicyGroups, PolicyMapMultiAgentVector

NUM_POLICIES, NUM_ENVS = 8, 16_384
AGENTS = ["a", "b", "c", "d"]


class Still:
    """Nothing happens, at no cost, except that environments end."""

    possible_agents = AGENTS

    def __init__(self, num_envs, share=0.0):
        self.num_envs = num_envs
        self.nothing = dict.fromkeys(AGENTS, np.zeros(num_envs))
        self.no_end = {agent: np.zeros(num_envs, np.bool_) for agent in AGENTS}
        rng = np.random.default_rng(0)
        self.ends = cycle([dict.fromkeys(AGENTS, rng.random(num_envs) < share) for _ in range(100)])

    def reset(self):
        return self.nothing, {}

    def step(self, actions):
        return self.nothing, self.nothing, next(self.ends), self.no_end, {}


def wrapped(env, mode="SameStep"):
    env = PolicyMapMultiAgentVector(env, NUM_POLICIES, seed=0, autoreset_mode=mode)
    env.reset()
    return env


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_step_without_an_end_costs_the_same_at_any_number_of_environments(side_by_side, report, mode):
    many, few = wrapped(Still(NUM_ENVS), mode), wrapped(Still(64), mode)
    times = side_by_side(lambda: many.step(None), lambda: few.step(None), rounds=101)
    what = f"PolicyMapMultiAgentVector.step, no end, {mode}, 16,384 environments of 4 agents"
    report(what, "the same, 64 environments", times[0] / times[1], 1.2, 2)


def test_a_step_with_ends_costs_little_more_than_unseeded_lines(side_by_side, report):
    env, bare = wrapped(Still(NUM_ENVS, 0.01)), Still(NUM_ENVS, 0.01)
    rng = np.random.default_rng()
    policy_ids = rng.integers(0, NUM_POLICIES, (NUM_ENVS, len(AGENTS)))
    episodes = np.zeros(NUM_ENVS, np.int64)

    def by_hand():
        observations, rewards, terminations, truncations, infos = bare.step(None)
        done = np.stack([terminations[agent] | truncations[agent] for agent in AGENTS]).all(0)
        episodes[done] += 1
        due = done & (episodes % 10 == 0)
        policy_ids[due] = rng.integers(0, NUM_POLICIES, (np.count_nonzero(due), len(AGENTS)))
        tags = {agent: {"policy_id": policy_ids[:, seat].copy()} for seat, agent in enumerate(AGENTS)}
        return observations, rewards, terminations, truncations, {**infos, **tags}

    for _ in range(1000):  # until the environments are at episodes of their own
        env.step(None), by_hand()
    ours, persons = side_by_side(lambda: env.step(None), by_hand, rounds=101)
    what = "PolicyMapMultiAgentVector.step, 1% of 16,384 environments of 4 agents end"
    report(what, "a masked update in NumPy", ours / persons, 3, 6)


def test_eight_stacked_policies_cost_about_one(side_by_side, report):
    """Observations of 48 numbers, two hidden layers of 256, actions of 12: the sizes of Isaac Lab's legged robots."""
    torch = pytest.importorskip("torch")

    def network():
        sizes = [(48, 256), (256, 256), (256, 12)]
        return torch.nn.Sequential(*(layer for size in sizes for layer in (torch.nn.Linear(*size), torch.nn.Tanh())))

    policies = [network() for _ in range(NUM_POLICIES)]
    env = wrapped(Still(NUM_ENVS))
    observations = torch.rand(NUM_ENVS * len(AGENTS), 48)
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the clock is the processor's, which runs while a thread waits for another
    try:
        with torch.inference_mode():
            mixed, one = side_by_side(
                lambda: PolicyGroups(env.policy_ids).act(policies, observations),
                lambda: policies[0](observations),
                rounds=9,
            )
    finally:
        torch.set_num_threads(num_threads)
    what = "acting in 16,384 environments of 4 agents, 8 policies, torch"
    report(what, "one policy for all rows", mixed / one, 1.1, 2)
