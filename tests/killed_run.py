"""A run that may be killed at any moment: python killed_run.py FOLDER EPISODES

Each mapping has its own environment. After each episode, the assigner, the payoff and the matchups so far are saved to
one file. A run that finds such a file resumes from it. It prints one dot per episode.
"""

import sys
from pathlib import Path
from typing import ClassVar

from pettingzoo.utils.env import ParallelEnv

import pz_policymap as pm

AGENTS = ["red_0", "red_1", "blue_0", "blue_1"]
NUM_POLICIES = 6


class Contest(ParallelEnv):
    """Two steps per episode; rewards depend on the episode and the action only."""

    metadata: ClassVar = {"name": "contest_v0"}
    possible_agents = AGENTS

    def reset(self, seed=None, options=None):
        self.agents, self.time = list(AGENTS), 0
        return dict.fromkeys(AGENTS, 0), {agent: {} for agent in AGENTS}

    def step(self, actions):
        self.time += 1
        over = self.time == 2
        self.agents = [] if over else list(AGENTS)
        rewards = {agent: float(action * 0.1) for agent, action in actions.items()}
        return (
            dict.fromkeys(AGENTS, self.time),
            rewards,
            dict.fromkeys(AGENTS, over),
            dict.fromkeys(AGENTS, False),
            {agent: {} for agent in AGENTS},
        )


def mappings(payoff):
    """Returns every mapping by name. Matchmaking mappings read the ledger."""
    hardest = pm.Weighted(lambda: pm.pfsp(payoff.win_rates[0], floor=0.1), policies=NUM_POLICIES)
    return {
        "uniform": pm.Uniform(NUM_POLICIES),
        "unmixed": pm.Uniform(NUM_POLICIES, mix=False),
        "without replacement": pm.Uniform(NUM_POLICIES, replace=False),
        "weighted": pm.Weighted([0.3, 0.1, 0.1, 0.2, 0.2, 0.1]),
        "by results": hardest,
        "fixed": pm.Fixed({agent: i for i, agent in enumerate(AGENTS)}),
        "by env index": pm.ByEnvIndex(NUM_POLICIES),
        "function": pm.FromFunction(lambda agents, draw: {a: int(draw.rng.integers(NUM_POLICIES)) for a in agents}),
        "shared": pm.Shared(pm.Uniform(NUM_POLICIES)),
        "teams": pm.Teams(pm.Uniform(NUM_POLICIES)),
        "roles": pm.Roles({"red": pm.Uniform([0, 1, 2]), "blue": pm.Uniform([3, 4, 5])}),
        "focal": pm.Focal(pm.Uniform([0, 1]), pm.Weighted(lambda: pm.pfsp(payoff.win_rates))),
        "per worker": pm.PerWorker(NUM_POLICIES, policies_per_worker=3, envs_per_worker=4),
        "balanced": pm.Balanced(NUM_POLICIES, num_envs=8),
        "round robin": pm.RoundRobin(NUM_POLICIES, num_envs=8, order="seeded"),
    }


class Run:
    """The environment of one mapping, with everything that a checkpoint must hold."""

    def __init__(self, name, path):
        self.path = path
        self.payoff = pm.Payoff(NUM_POLICIES, decay=0.99)
        rule = mappings(self.payoff)[name]
        self.wrapped = pm.wrap(Contest(), rule, resample_every=3, seed=7, env_index=5)
        self.env = pm.record_results(self.wrapped, self.payoff)
        self.matchups = []
        if path.exists():
            states = pm.load(path)
            self.wrapped.assigner.load_state_dict(states["assigner"])
            self.payoff.load_state_dict(states["payoff"])
            self.matchups = states["matchups"]["played"]

    def play(self):
        _, infos = self.env.reset()
        ids = [infos[agent]["policy_id"] for agent in AGENTS]
        episode = len(self.matchups)
        while self.env.agents:
            actions = {
                agent: (policy * 31 + seat * 7 + episode) % 11
                for seat, (agent, policy) in enumerate(zip(AGENTS, ids, strict=True))
            }
            self.env.step(actions)
        self.matchups.append(ids)
        pm.save(self.path, assigner=self.wrapped.assigner, payoff=self.payoff, matchups={"played": self.matchups})


def main(folder, episodes):
    names = list(mappings(pm.Payoff(NUM_POLICIES)))
    runs = [Run(name, folder / f"{name}.npz") for name in names]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while any(len(run.matchups) < episodes for run in runs):
        for run in runs:
            if len(run.matchups) < episodes:
                run.play()
                sys.stdout.write(".")
                sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
