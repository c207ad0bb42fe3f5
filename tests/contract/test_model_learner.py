"""`LearnerEnv` compared with the model; see `tests/contract_model.py`."""

import copy

import cloudpickle
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from pettingzoo.utils import parallel_to_aec

import pz_policymap as pm
from tests.contract_model import NUM_POLICIES, Model
from tests.learner_envs import Survival
from tests.machine import CADENCES, SEEDS, Log, examples

BACKGROUNDS = [
    pm.Uniform([1, 2, 3]),
    pm.Uniform([4, 5, 6, 7], replace=False),
    pm.Weighted([0, 1, 2]),
    pm.Shared(pm.Uniform([8, 9])),
    pm.Fixed(2),
]
RULES = st.builds(pm.Focal, st.just(pm.Fixed(0)), st.sampled_from(BACKGROUNDS), rotate=st.booleans())


class Opponent:
    """Keeps the agents that it acted for, in a list that is copied with it."""

    def __init__(self, policy, calls):
        self.policy, self.calls = policy, calls

    def __call__(self, observation, agent, info):
        assert info["policy_id"] == self.policy
        self.calls.append((agent, self.policy))
        return self.policy


class LearnerMachine(RuleBasedStateMachine):
    """A game of survival, of which the learner sees only its own turns."""

    @initialize(
        mapping=RULES,
        cadence=CADENCES,
        seed=st.none() | st.integers(0, 2**70),
        num_agents=st.sampled_from([2, 2, 3, 4]),
        late=st.sets(st.sampled_from([1, 1, 2, 3]), max_size=1),
        in_turns=st.booleans(),
    )
    def make(self, mapping, cadence, seed, num_agents, late, in_turns):
        self.late = [i for i in late if i < num_agents and not in_turns]
        self.num_agents, self.in_turns, self.cadence, self.seed = num_agents, in_turns, cadence, seed
        agents = [f"player_{i}" for i in range(num_agents)]
        self.model = Model(mapping, agents, *cadence, seed, 0)
        self.set_out()

    def set_out(self):
        survival = Survival(self.num_agents, self.late)
        bare = parallel_to_aec(survival) if self.in_turns else survival
        cadence = dict(zip(("resample_every", "warmup_episodes"), self.cadence, strict=True))
        self.policies = pm.wrap(bare, self.model.rule, seed=self.seed, **cadence)
        self.log, self.calls = Log(), []
        opponents = {policy: Opponent(policy, self.calls) for policy in range(1, NUM_POLICIES)}
        self.env = pm.LearnerEnv(pm.record_results(self.policies, self.log), opponents)
        self.survival, self.recorded, self.playing, self.was_reset = survival, 0, False, False

    @rule(seed=SEEDS, steps=st.integers(0, 8))
    def episode(self, seed, steps):
        before = sum(not actions for actions in self.survival.seen_actions)
        if self.model.seed is None and seed is None:
            seed = 0  # entropy could not be replayed
        del self.calls[:]
        skipped = len(self.log)
        _, info = self.env.reset(seed=seed)
        self.model.reset(seed)
        for _ in range(sum(not actions for actions in self.survival.seen_actions) - before - 1):
            self.model.reset()  # an episode without a turn of the learner
        self.recorded += len(self.log) - skipped
        self.playing, self.was_reset, self.earned = True, True, 0.0
        self.look(info)
        for _ in range(steps):
            if self.playing:
                self.step()

    def step(self):
        del self.calls[:]
        _, reward, terminated, truncated, info = self.env.step(0)
        self.earned += reward
        self.look(info)
        assert all(self.model.policy_ids[agent] == policy != 0 for agent, policy in self.calls)
        if terminated or truncated:
            self.playing = False
            self.recorded += 1
            last = self.log[-1]
            seats = dict(zip(last.agents, zip(last.policies, last.returns, strict=True), strict=True))
            assert seats[self.env.agent] == (0, self.earned)
            assert {a: policy for a, (policy, _) in seats.items()} == {a: self.model.policy_ids[a] for a in seats}

    def look(self, info):
        players = self.model.policy_ids
        assert info["policy_id"] == 0
        assert players[self.env.agent] == 0

    @rule(mapping=RULES, now=st.booleans())
    def set_mapping(self, mapping, now):
        self.env.set_mapping(mapping, now=now)
        self.model.set_mapping(mapping, now)

    @rule(how=st.sampled_from([copy.deepcopy, lambda things: cloudpickle.loads(cloudpickle.dumps(things))]))
    def copy(self, how):
        self.env, self.policies, self.log, self.calls, self.survival = how(
            (self.env, self.policies, self.log, self.calls, self.survival)
        )

    @rule()
    def state_is_resumed(self):
        assume(self.was_reset)
        state = self.policies.state_dict()
        self.model.unfinished = self.playing
        self.model.load()
        self.seed = self.model.seed
        self.set_out()
        self.policies.assigner.load_state_dict(state)

    @invariant()
    def assignment_and_records_equal_the_model(self):
        if getattr(self, "was_reset", False):
            assert self.env.policy_ids == self.model.policy_ids
            assert self.policies.assigner.episode[0] == self.model.episode
            assert len(self.log) == self.recorded
            state = self.policies.state_dict()
            assert state["episode"] == self.model.episode - self.playing


TestLearner = LearnerMachine.TestCase
TestLearner.settings = examples(60)
