"""The wrappers held against a model of a few lines, written from the contract alone.

Random environments (agents that die, respawn, come late under new names, never appear; infos empty, shared, missing,
with foreign keys; errors thrown from reset) meet random calls.
"""

import copy

import cloudpickle
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import pz_policymap as pm
from tests.stub_envs import StubParallel

NAMES = ["a", "b", "c", "d", "e"]
MAPPINGS = [
    pm.Uniform(1000),
    pm.Uniform([7, 3, 900]),
    pm.Uniform(1000, mix=False),
    pm.Uniform(50, replace=False),
    pm.Weighted([0.1, 0.2, 0.7]),
    pm.Fixed(3),
    pm.ByEnvIndex(5),
    pm.Shared(pm.Weighted([1, 1, 1])),
    pm.FromFunction(lambda agents, draw: {agent: draw.episode % 1000 + i for i, agent in enumerate(agents)}),
]
INFOS = {
    "empty": lambda time, agents: {agent: {} for agent in agents},
    "filled": lambda time, agents: {agent: {"x": time, "y": None} for agent in agents},
    "shared": lambda time, agents: dict.fromkeys(agents, SHARED),
    "none": lambda time, agents: {},
    "some": lambda time, agents: {agent: {"x": 1} for agent in agents[::2]},
    "foreign": lambda time, agents: {**{agent: {} for agent in agents}, "common": SHARED, 17: "seventeen"},
}
SHARED = {"z": 1}
CADENCES = st.tuples(st.integers(1, 4), st.integers(0, 3))


class Model:
    """Who plays whom, from the contract: nothing is consumed, so the numbers of the draw are the whole state."""

    def __init__(self, rule, possible_agents, every, warmup, seed, env_index):
        self.rule, self.possible, self.every, self.warmup = rule, possible_agents, every, warmup
        self.seed, self.pinned, self.env_index = seed, seed is not None, env_index
        self.episode, self.redraw, self.draw_episode, self.drawn = -1, None, None, {}
        self.there = []

    def reset(self, seed, live, forced):
        if seed is not None and not self.pinned:
            self.seed, self.episode, self.draw_episode, self.redraw = seed, -1, None, None
        self.episode += 1
        due = self.episode % self.every == 0 or self.episode < self.warmup
        asked = self.redraw is not None and self.episode >= self.redraw
        if self.draw_episode is None or (due and self.draw_episode != self.episode) or asked:
            self.draw_episode, self.drawn_by, self.drawn, self.redraw = self.episode, self.rule, {}, None
            self.appear(self.possible or live)
        self.forced, self.there = forced, list(self.possible or [])
        self.appear(live)

    def appear(self, agents):
        """Gives those who are new what they would have had from the start; nobody else changes."""
        seats = [*self.drawn, *(agent for agent in agents if agent not in self.drawn)]
        draw = pm.Draw.at(self.seed, seats, [self.env_index], [self.draw_episode], resample_every=self.every)
        self.there += [agent for agent in agents if agent not in self.there]
        self.drawn = {**dict(zip(seats, self.drawn_by.assign(draw)[0].tolist(), strict=True)), **self.drawn}

    @property
    def policy_ids(self):
        return {**{agent: self.drawn[agent] for agent in self.there}, **self.forced}


class WrapperMachine(RuleBasedStateMachine):
    """Plays one wrapped environment beside the model."""

    @initialize(
        rule=st.sampled_from(MAPPINGS),
        script=st.lists(st.lists(st.sampled_from(NAMES), unique=True, min_size=1), min_size=1, max_size=5),
        generated=st.booleans(),
        infos=st.sampled_from(sorted(INFOS)),
        fail_at=st.sets(st.integers(0, 12), max_size=4),
        cadence=CADENCES,
        seed=st.none() | st.integers(0, 2**70),
        env_index=st.integers(0, 2**40),
    )
    def make(self, rule, script, generated, infos, fail_at, cadence, seed, env_index):
        possible = None if generated else NAMES
        env = StubParallel([*script, []], INFOS[infos], possible, fail_at)
        self.settings = {
            "resample_every": cadence[0],
            "warmup_episodes": cadence[1],
            "seed": seed,
            "env_index": env_index,
        }
        self.possible = possible
        self.env = pm.wrap(env, rule, **self.settings)
        self.model = Model(rule, possible, *cadence, seed, env_index)
        self.playing, self.seen = False, []

    @rule(seed=st.none() | st.integers(0, 3), force=st.none() | st.sampled_from(NAMES), policy=st.integers(0, 2))
    def reset(self, seed, force, policy):
        stub = self.env.unwrapped
        live = stub.script[0]
        options = None if force is None or force not in (self.possible or live) else {"policy_ids": {force: policy}}
        if self.model.seed is None and seed is None:
            seed = 0  # entropy would be no replay
        before = self.env.assigner.state_dict(unfinished=False)
        if stub.resets + 1 in stub.fail_at:
            with pytest.raises(RuntimeError, match="fails"):
                self.env.reset(seed=seed, options=options)
            assert self.env.assigner.state_dict(unfinished=False) == before
            return
        result = self.env.reset(seed=seed, options=options)
        self.model.reset(seed, live, options["policy_ids"] if options else {})
        self.playing = True
        self.look(result, live)

    @precondition(lambda self: self.playing)
    @rule()
    def step(self):
        before = list(self.env.agents)
        result = self.env.step(dict.fromkeys(before, 0))
        back = before + [agent for agent in self.env.unwrapped.agents if agent not in before]
        self.model.appear(back)
        self.look(result, back)

    def look(self, result, back):
        """Holds the infos that came back against the model."""
        infos = result[-1]
        expected = self.model.policy_ids
        assert {agent: infos[agent]["policy_id"] for agent in back} == {agent: expected[agent] for agent in back}
        foreign = {key: info for key, info in infos.items() if key not in NAMES}
        assert all(info in (SHARED, "seventeen") for info in foreign.values())
        assert SHARED == {"z": 1}
        dicts = [infos[agent] for agent in back]
        assert len({id(info) for info in dicts}) == len(dicts)
        assert not any(info is old for info in dicts for old in self.seen)
        self.seen = dicts

    @rule(mapping=st.sampled_from(MAPPINGS), now=st.booleans())
    def set_mapping(self, mapping, now):
        self.env.set_mapping(mapping, now=now)
        self.model.rule = mapping
        if now:
            self.model.redraw = self.model.episode + 1

    @rule(copied=st.sampled_from([copy.deepcopy, lambda env: cloudpickle.loads(cloudpickle.dumps(env))]))
    def copy(self, copied):
        self.env = copied(self.env)

    @rule()
    def state_into_another_object(self):
        """An unfinished episode is played again: the model goes back by one."""
        unfinished = self.playing and bool(self.env.unwrapped.agents)
        other = pm.wrap(copy.deepcopy(self.env.unwrapped), self.model.rule, **self.settings)
        other.assigner.load_state_dict(self.env.assigner.state_dict())
        self.env = other
        self.model.episode -= unfinished
        self.model.drawn_by = self.model.rule  # a rule that has been replaced is known to a state by name alone
        self.model.pinned = self.model.seed is not None
        self.playing = False

    @invariant()
    def who_plays_whom_is_what_the_model_says(self):
        if getattr(self, "playing", False):
            assert self.env.policy_ids == self.model.policy_ids
            assert self.env.assigner.episode[0] == self.model.episode
            assert self.env.assigner.draw_episode[0] == self.model.draw_episode


TestParallel = WrapperMachine.TestCase
TestParallel.settings = settings(max_examples=1000, stateful_step_count=25, deadline=None, phases=[Phase.generate])
