"""AgileRL's `AsyncPettingZooVecEnv`: dicts of arrays, reset in the same step, NaN for dead agents: `nox -s agilerl`."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from pettingzoo import ParallelEnv

import pz_policymap as pm

pytest.importorskip("agilerl")
from agilerl.vector import AsyncPettingZooVecEnv

AGENTS = ["a", "b", "c"]
NUM_ENVS = 3


class Mortal(ParallelEnv):
    """Agents die one by one, at times drawn from the seed; action 1 pays, action 0 does not."""

    metadata = {"name": "mortal_v0", "render_modes": []}  # noqa: RUF012
    render_mode = None
    possible_agents = AGENTS

    def observation_space(self, agent):
        return gymnasium.spaces.Box(0, 100, (2,), np.float32)

    def action_space(self, agent):
        return gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.time, self.agents = 0, list(AGENTS)
        self.lives = dict(zip(AGENTS, self.rng.integers(1, 6, 3).tolist(), strict=True))
        return self._observations(), {agent: {"left": self.lives[agent]} for agent in self.agents}

    def step(self, actions):
        self.time += 1
        alive = self.agents
        rewards = {agent: float(actions[agent]) for agent in alive}
        ended = {agent: self.lives[agent] == self.time for agent in alive}
        observations = self._observations()
        infos = {agent: {"left": self.lives[agent] - self.time} for agent in alive}
        self.agents = [agent for agent in alive if not ended[agent]]
        return observations, rewards, ended, dict.fromkeys(alive, False), infos

    def _observations(self):
        return {agent: np.array([self.time, self.lives[agent]], np.float32) for agent in self.agents}


@pytest.fixture
def make():
    """Makes vectors of AgileRL's, and closes them."""
    made = []

    def make():
        made.append(AsyncPettingZooVecEnv([Mortal] * NUM_ENVS))
        return made[-1]

    yield make
    for env in made:
        env.close()


def actions_at(step, dead):
    """Actions by agent; NaN for the dead, which AgileRL leaves out."""
    moves = np.random.default_rng(step).integers(0, 2, (3, NUM_ENVS)).astype(float)
    return {agent: np.where(dead[agent], np.nan, moves[seat]) for seat, agent in enumerate(AGENTS)}


def same(left, right):
    return all(np.array_equal(left[agent], right[agent], equal_nan=True) for agent in AGENTS)


def test_bare_and_wrapped_trajectories_are_identical_and_tags_change_at_every_end(make):
    played, trajectories = [], []
    tagged = pm.wrap(make(), 9, autoreset_mode="SameStep", seed=1, resample_every=1)
    for env in (make(), pm.record_results(tagged, played.append)):
        observations, _ = env.reset(seed=3)
        seen, episode, dead = [observations], np.zeros(NUM_ENVS, int), dict.fromkeys(AGENTS, np.zeros(NUM_ENVS, bool))
        for step in range(40):
            observations, rewards, terminations, truncations, infos = env.step(actions_at(step, dead))
            seen += [observations, rewards, terminations, truncations]
            done = {agent: dead[agent] | (np.nan_to_num(terminations[agent]) == 1) for agent in AGENTS}
            over = np.logical_and.reduce(list(done.values()))
            episode += over
            dead = {agent: done[agent] & ~over for agent in AGENTS}
            if hasattr(env, "policy_ids"):
                drawn = pm.assignments(9, AGENTS, seed=1, env_index=range(NUM_ENVS), episode=episode, resample_every=1)
                assert env.policy_ids.tolist() == drawn.tolist()
                assert all(infos[a]["policy_id"].tolist() == drawn[:, s].tolist() for s, a in enumerate(AGENTS))
                assert set(infos["a"]) >= {"left", "policy_id"}
        trajectories.append(seen)
    assert all(map(same, *trajectories))
    assert any(np.isnan(part[agent]).any() for part in trajectories[0][2::4] for agent in AGENTS)
    assert len(played) == episode.sum() > 12
    assert all(sum(e.returns) <= sum(e.lengths) and max(e.lengths) <= 5 for e in played)


def test_population_of_three_learns_from_its_own_rows_only(make):
    """Bernoulli policies with one logit each; a policy is updated with the rows of live agents that it controls."""
    env = pm.wrap(make(), pm.Weighted([0.5, 0.5, 0]), autoreset_mode="SameStep", seed=0, resample_every=1)
    logits, rng, updated = np.zeros(3), np.random.default_rng(0), np.zeros(3, int)
    env.reset(seed=0)
    dead, alive_rows = dict.fromkeys(AGENTS, np.zeros(NUM_ENVS, bool)), 0
    for _ in range(200):
        alive = ~np.stack([dead[agent] for agent in AGENTS], 1)
        groups = pm.PolicyGroups(env.policy_ids, alive)
        chances = 1 / (1 + np.exp(-logits))
        choose = [lambda rows, chance=chance: (rng.random(len(rows)) < chance) * 1.0 for chance in chances]
        chosen = groups.act(choose, np.zeros((alive.size, 1))).reshape(alive.shape)
        given = {agent: np.where(alive[:, seat], chosen[:, seat], np.nan) for seat, agent in enumerate(AGENTS)}
        _, rewards, terminations, *_ = env.step(given)
        earned = np.stack([rewards[agent] for agent in AGENTS], 1).reshape(-1)
        assert not np.isnan(earned[alive.reshape(-1)]).any()
        for policy, rows in groups:
            logits[policy] += 0.1 * ((chosen.reshape(-1)[rows] - chances[policy]) * earned[rows]).mean()
            updated[policy] += len(rows)
        alive_rows += alive.sum()
        done = {agent: dead[agent] | (np.nan_to_num(terminations[agent]) == 1) for agent in AGENTS}
        over = np.logical_and.reduce(list(done.values()))
        dead = {agent: done[agent] & ~over for agent in AGENTS}
    assert updated.sum() == alive_rows
    assert (logits[:2] > 1.0).all()
    assert (logits[2], updated[2]) == (0, 0)


def test_wrapper_inside_the_vector_is_refused(make):
    fns = pm.env_fns(Mortal, NUM_ENVS, 4, seed=0)
    env = AsyncPettingZooVecEnv([partial(fn) for fn in fns])
    try:
        with pytest.raises(ValueError, match="info_key 'policy_id' is already used"):
            pm.wrap(env, 4, autoreset_mode="SameStep").reset(seed=0)
    finally:
        env.close()
