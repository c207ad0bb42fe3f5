"""`SnapshotPool` beside real environments, at random: ids, release, capacity, shares and resumption."""

import json

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from pettingzoo.classic import rps_v2

import pz_policymap as pm

CAPACITY = 3


def new_pool():
    opponents = {"snapshots": (0.5, "pfsp"), "random": 0.3, "self": 0.2}
    learners = [pm.PoolLearner("red", opponents, every=3), pm.PoolLearner("blue", {"all snapshots": 1.0}, every=2)]
    return pm.SnapshotPool(learners, fixed=["random"], capacity=CAPACITY, evict="spread")


class Training(RuleBasedStateMachine):
    """Learners that take snapshots while environments, some of them mid-episode, use the members."""

    def __init__(self):
        super().__init__()
        self.pool, self.payoff = new_pool(), pm.Payoff(3)
        mapping = self.pool.mapping(self.payoff)
        self.envs = [pm.wrap(rps_v2.parallel_env(), mapping, resample_every=2, seed=i) for i in range(2)]
        self.steps = {"red": 0, "blue": 0}
        self.contents = {0: "red", 1: "blue", 2: "random"}  # what each id ever stood for
        self.freed = set()

    @rule(learner=st.sampled_from(["red", "blue"]), steps=st.integers(0, 4))
    def train(self, learner, steps):
        self.steps[learner] += steps
        step = self.steps[learner]
        if self.pool.snapshot_due(learner, step, self.payoff):
            member = self.pool.snapshot(learner, step, self.payoff, name=f"{learner}@{step}#{self.pool.num_policies}")
            assert member.policy_id not in self.contents
            self.contents[member.policy_id] = member.name
            self.payoff.grow(self.pool.num_policies)

    @rule(index=st.integers(0, 1))
    def follow(self, index):
        self.envs[index].set_mapping(self.pool.mapping(self.payoff))
        self.envs[1 - index].set_mapping(self.pool.mapping(self.payoff))

    @rule(index=st.integers(0, 1))
    def reset(self, index):
        env = self.envs[index]
        env.reset()
        assert not self.freed & set(env.policy_ids.values())

    @rule(index=st.integers(0, 1))
    def step(self, index):
        env = self.envs[index]
        if env.assigner.episode[0] >= 0 and env.agents:
            env.step(dict.fromkeys(env.agents, 0))
            assert not self.freed & set(env.policy_ids.values())

    @rule()
    def release(self):
        self.freed |= {member.policy_id for member in self.pool.release(self.envs)}

    @precondition(lambda self: self.pool.num_policies > 3)
    @rule(data=st.data())
    def record(self, data):
        pair = data.draw(st.permutations(range(self.pool.num_policies)))[:2]
        self.payoff.record(pm.Episode(policies=pair, returns=[1.0, 0.0]))

    @rule()
    def resume(self):
        state = json.loads(json.dumps(self.pool.state_dict()))
        self.pool = new_pool()
        self.pool.load_state_dict(state)
        assert self.pool.state_dict() == state

    @invariant()
    def holds(self):
        assert dict(enumerate(self.pool.names)) == self.contents
        assert len(self.pool.slots) <= CAPACITY
        assert len(set(self.pool.slots.values())) == len(self.pool.slots)
        assert not self.freed & set(self.pool.slots)
        for learner in ("red", "blue"):
            weights = self.pool.opponent_weights(learner, self.payoff)
            assert np.isclose(weights.sum(), 1.0)
            assert not weights[list(self.freed)].any()


TestTraining = Training.TestCase
TestTraining.settings = settings(deadline=None, max_examples=60, stateful_step_count=40)
