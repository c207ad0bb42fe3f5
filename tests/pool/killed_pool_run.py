"""Self-play that may be killed at any moment: python killed_pool_run.py FILE EPISODES

After every step of an episode, environment, ledger, pool, networks and matchups are saved to one file, and a run that
finds such a file resumes from it. A dot is written per episode.
"""

import sys
from pathlib import Path

from pettingzoo.classic import rps_v2

import pz_policymap as pm


class Run:
    """One learner against snapshots of itself: its network is a number, which training increases."""

    def __init__(self, path):
        self.path = path
        opponents = {"snapshots": (0.7, "pfsp"), "random": 0.3}
        learner = pm.PoolLearner("main", opponents, win_rate=0.4, min_games=6, max_steps=9)
        self.pool = pm.SnapshotPool([learner], fixed=["random"], capacity=4, evict="weakest")
        self.payoff = pm.Payoff(self.pool.num_policies, decay=0.99)
        self.networks, self.matchups = {0: 0, 1: 0}, []
        states = pm.load(path) if path.exists() else None
        if states:
            self.pool.load_state_dict(states["pool"])
            self.payoff.load_state_dict(states["payoff"])
            self.networks = {int(policy): network for policy, network in states["networks"].items()}
            self.matchups = states["run"]["matchups"]
        env = rps_v2.parallel_env(max_cycles=3)
        self.wrapped = pm.wrap(env, self.pool.last_mapping, resample_every=2, seed=11)
        if states:
            self.wrapped.load_state_dict(states["env"])
        self.env = pm.record_results(self.wrapped, self.payoff)

    def save(self):
        networks = {str(policy): network for policy, network in self.networks.items()}
        run = {"matchups": self.matchups}
        pm.save(self.path, env=self.wrapped, payoff=self.payoff, pool=self.pool, networks=networks, run=run)

    def play(self):
        """Plays an episode and trains; the moves depend on networks and the number of the episode."""
        episode = len(self.matchups)
        self.env.reset()
        ids = self.env.policy_ids
        while self.env.agents:
            self.save()  # in the middle of an episode, which a resumed run repeats
            moves = {agent: (self.networks[ids[agent]] * (episode + 1)) % 3 for agent in self.env.agents}
            self.env.step(moves)
        self.matchups.append(list(ids.values()))
        self.networks[0] += 1
        if self.pool.snapshot_due("main", episode, self.payoff):
            member = self.pool.snapshot("main", episode, self.payoff)
            self.networks[member.policy_id] = self.networks[0]
        self.env.set_mapping(self.pool.mapping(self.payoff))
        for member in self.pool.release([self.env]):
            del self.networks[member.policy_id]
        self.save()


def main(path, episodes):
    run = Run(path)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while len(run.matchups) < episodes:
        run.play()
        sys.stdout.write(".")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
