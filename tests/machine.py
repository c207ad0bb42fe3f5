"""`Machine`: plays one wrapped environment beside the models of `tests.contract`; subclasses know the wrapper."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import pz_policymap as pm
from tests import contract_model as contract
from tests.contract_model import KNOBS, NAMES, NUM_POLICIES, RULES, Model, fits, ledger
from tests.puppets import INFOS, SHARED, PlannedError

SOME = st.lists(st.sampled_from(NAMES), unique=True)
LIVE = st.lists(st.sampled_from(NAMES), unique=True, min_size=1)
SEEDS = st.none() | st.integers(0, 3)
PINS = st.none() | st.none() | st.integers(0, 2**70) | st.just((5, 2**40))
INDICES = st.sampled_from([None, 0, 5, 60, 2**40])
CADENCES = st.tuples(st.integers(1, 4), st.sampled_from([0, 0, 2]))
REWARDS = st.lists(st.sampled_from([0.0, 1.0, -1.0, 0.1, 0.2]), min_size=6, max_size=6)
WEIGHTS = st.lists(st.integers(1, 9), min_size=3, max_size=3) | st.sampled_from([[9, 0, 0], [0, 0, 9]])
KINDS = st.sampled_from(sorted(INFOS))
RARELY = st.sampled_from([False] * 7 + [True])
FAILS = st.sampled_from([None] * 4 + ["early", "late"])
COPIES = {"copy": copy.deepcopy, "pickle": lambda things: cloudpickle.loads(cloudpickle.dumps(things))}
MEMORY = Path("/dev/shm")  # in memory if available, to avoid waiting for the disk


def steps_of(**plan):
    return st.lists(st.fixed_dictionaries(plan), max_size=4)


def episodes_of(resets, steps):
    """Consecutive episodes; without a reset, the previous one continues."""
    return st.lists(st.tuples(st.none() | resets, steps), min_size=1, max_size=4)


def examples(share):
    """Returns how many examples a machine plays: its share of a thousand, or of as many more as the profile has."""
    return settings(max_examples=share * settings().max_examples // 100, stateful_step_count=10, print_blob=True)


class Log(list):
    """A sink that is copied with the environment, as `[].append` would not be."""

    def record(self, episode):
        self.append(episode)


class Elsewhere:
    """Another process, which loads states into assigners of its own and plays some episodes."""

    CODE = """
import pickle, sys, traceback
import pz_policymap as pm
from tests import contract_model as contract
while sys.stdin.buffer.peek(1):
    path, knobs, rule, agents, settings, live, count = pickle.load(sys.stdin.buffer)
    contract.turn(**knobs)
    played = []
    try:
        assigner = pm.PolicyAssigner(rule, agents, **settings)
        assigner.load_state_dict(pm.load(path)["env"])
        for _ in range(count):
            assigner.begin_episodes(agents=live)
            played.append([assigner.assignment(row) for row in range(assigner.num_envs)])
    except Exception:
        played.append(traceback.format_exc())
    pickle.dump(played, sys.stdout.buffer)
    sys.stdout.buffer.flush()
"""
    process = None

    @classmethod
    def play(cls, *task):
        if cls.process is None:
            root = Path(contract.__file__).parent.parent
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            cls.process = subprocess.Popen([sys.executable, "-c", cls.CODE], cwd=root, **pipes)
        cloudpickle.dump(task, cls.process.stdin)
        cls.process.stdin.flush()
        return pickle.load(cls.process.stdout)

    @classmethod
    def end(cls):
        if cls.process is not None:
            cls.process.stdin.close()
            cls.process.wait()
            cls.process.stdout.close()
            cls.process = None


class Machine(RuleBasedStateMachine):
    """What all machines have in common: the calls that are the same for every wrapper.

    Attributes:
        env: The outermost wrapper.
        models: One per environment.
        episodes: What the model has recorded.
    """

    records, is_vector = True, False
    recording = {}  # noqa: RUF012  # more arguments of record_results

    def __init__(self):
        super().__init__()
        contract.turn()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)

    def teardown(self):
        self.folder.cleanup()

    def open(self, rule, agents, cadence, seed, env_index, num_envs=1, wrapping=None):
        """Makes models and environment; a rule that does not fit is refused, and another one takes its place."""
        self.num_envs, self.first = num_envs, env_index or 0
        self.settings = {
            "resample_every": cadence[0],
            "warmup_episodes": cadence[1],
            "seed": seed,
            "env_index": env_index,
        }
        self.wrapping = wrapping or {}
        self.knows_index = env_index is not None or self.is_vector
        self.pinned, self.team_of = seed is not None, None
        if not self.fits(rule):
            with pytest.raises(ValueError, match="must"):
                self.wrap(self.bare, rule)
            rule = pm.Uniform(NUM_POLICIES)
        self.models = [Model(rule, agents, *cadence, seed, self.first + i) for i in range(num_envs)]
        self.set_out(self.bare)
        self.episodes, self.seen, self.reset_needed, self.is_new = [], [], True, True
        self.compared = -1

    def fits(self, rule):
        index = self.first if self.knows_index else None
        last = self.first + self.num_envs - 1
        warmup = self.settings["warmup_episodes"]
        return fits(rule, pinned=self.pinned, warmup=warmup, env_index=index, last=last)

    def wrap(self, bare, rule):
        return pm.wrap(bare, rule, **self.settings, **self.wrapping)

    def set_out(self, bare):
        """Makes wrappers and ledgers anew around a bare environment."""
        self.policies = self.wrap(bare, self.models[0].rule)
        self.log, self.payoff = Log(), pm.Payoff(NUM_POLICIES)
        self.env = self.policies
        if self.records:
            self.env = pm.record_results(self.policies, self.payoff, self.log, team_of=self.team_of, **self.recording)

    @property
    def assigner(self):
        return self.policies.assigner

    def together(self, call, *expected, begin):
        """Makes a call and repeats it on the model: both succeed or both are unchanged. Returns the result, or None.

        Args:
            call: Of the environment.
            expected: Errors that it must raise, the first that is not None.
            begin: The same step on the models, which it returns; if it raises, the call must fail like a mapping.
        """
        before = repr(self.assigner.state_dict(unfinished=False))
        result, error = None, None
        try:
            result = call()
        except (ValueError, KeyError, PlannedError) as raised:
            error = raised
        if error is None and self.models[0].seed is None:
            for model in self.models:
                model.seed = self.assigner.seed  # OS entropy, which the model cannot predict
        wanted, why = next((kind for kind in expected if kind), None), "as planned"
        try:
            after = begin(copy.deepcopy(self.models))
        except (ValueError, RuntimeError) as planned:
            why = str(planned)
            wanted = wanted or ValueError
        assert "as planned" in why or "all seats" in why
        if wanted:
            assert type(error) is wanted, (error, wanted)
            assert wanted is not ValueError or "failed at the draw" in str(error) or "all seats" in str(error)
            assert repr(self.assigner.state_dict(unfinished=False)) == before
            return None
        assert error is None, error
        self.models = after
        return result

    def play(self, episodes):
        """Resets and steps; `reset`, `step` and `over` are a subclass's."""
        for begins, steps in episodes:
            if begins is not None:
                self.reset(**begins)
                self.counters_and_ledger_are_the_models()
            for step in steps:
                if self.reset_needed or self.over:
                    break
                self.step(**step)
                self.counters_and_ledger_are_the_models()

    over = False

    @rule(mapping=RULES, now=st.booleans())
    def set_mapping(self, mapping, now):
        if not self.fits(mapping):
            with pytest.raises(ValueError, match="must"):
                self.policies.set_mapping(mapping, now=now)
            return
        self.policies.set_mapping(mapping, now=now)
        for model in self.models:
            model.set_mapping(mapping, now)

    @rule(weights=WEIGHTS, bad=RARELY, fails=RARELY)
    def what_rules_read_changes(self, weights, bad, fails):
        contract.turn([float("nan"), 1, 2] if bad else weights, fails)

    @rule(
        where=st.sampled_from(["copy", "pickle", "file", "memory", "here", "process"]), stays=st.booleans(), live=LIVE
    )
    def goes_elsewhere(self, where, stays, live):
        if where in COPIES:
            self.copy(COPIES[where], goes_on=not stays)
        elif where == "process":
            self.state_goes_to_another_process(2 + stays, live)
        else:
            self.state_goes_on(where)

    def copy(self, how, goes_on):
        """Continues with a copy, or plays with a copy and continues with the original."""
        mine = self.env, self.policies, self.payoff, self.log
        if goes_on:
            self.env, self.policies, self.payoff, self.log = how(mine)
        else:
            env, policies, _, _ = how(mine)
            policies.set_mapping(pm.Fixed(0), now=True)
            policies.unwrapped.plan = copy.copy(policies.unwrapped.plan)
            vars(policies.unwrapped.plan).update(fail=None, live=NAMES[:2], infos="empty")
            env.reset(seed=99)

    def state_goes_on(self, where):
        """The state goes into another object, or back into this one."""
        if where == "file":
            path = self.folder.name + "/state.npz"
            pm.save(path, env=self.policies, payoff=self.payoff)
            states = pm.load(path)
        else:
            states = {"env": self.policies.state_dict(), "payoff": self.payoff.state_dict()}
        self.compared = -1
        if where != "here":
            log = self.log
            self.set_out(copy.deepcopy(self.policies.unwrapped))
            self.payoff.load_state_dict(states["payoff"])
            self.log.extend(log)
            self.is_new = True
            self.forget()
        self.policies.load_state_dict(states["env"])
        for model in self.models:
            model.load()
        self.pinned = self.models[0].pinned
        self.settings["seed"] = self.models[0].seed  # without it, rules that span environments could not be made again
        self.reset_needed = True

    def forget(self):
        """Drops running episodes, which new wrappers do not have."""

    def state_goes_to_another_process(self, count, live):
        models = copy.deepcopy(self.models)
        if models[0].seed is None:
            return  # entropy
        told = live if models[0].agents is None else None
        try:
            expected = []
            for model in models:
                model.load()
            for _ in range(count):
                for model in models:
                    model.reset(live=told or ())
                expected.append([dict(model.drawn) for model in models])
        except (ValueError, RuntimeError):
            return
        path = self.folder.name + "/elsewhere.npz"
        pm.save(path, env=self.policies)
        agents = self.assigner.agents if self.num_envs > 1 else models[0].agents
        settings = self.settings | {"env_index": self.assigner._given_env_index, "num_envs": self.num_envs}
        assert Elsewhere.play(path, KNOBS, models[0].rule, agents, settings, told, count) == expected

    @invariant()
    def counters_and_ledger_are_the_models(self):
        if not hasattr(self, "models"):
            return
        assert self.assigner.episode.tolist() == [model.episode for model in self.models]
        assert self.assigner.draw_episode.tolist() == [model.draw_episode for model in self.models]
        state = self.policies.state_dict()
        counted = [model.episode - model.unfinished for model in self.models]
        assert np.reshape(state["episode"], -1).tolist() == counted
        if not self.records or self.compared == len(self.episodes) == len(self.log):
            return
        self.compared = len(self.episodes)
        recorded = [
            dict(zip(e.agents, zip(e.policies, e.returns, e.lengths, strict=True), strict=True)) for e in self.log
        ]
        assert recorded == self.episodes, (recorded, self.episodes)
        wins, draws, shared, means = ledger(self.episodes, self.team_of)
        np.testing.assert_array_equal(self.payoff.wins, wins)
        np.testing.assert_array_equal(self.payoff.draws, draws)
        np.testing.assert_array_equal(self.payoff.episodes, shared)
        np.testing.assert_allclose(self.payoff.mean_returns, means, rtol=1e-12, atol=1e-12)

    def fresh(self, infos):
        """Checks that these objects were never returned before."""
        assert len({id(info) for info in infos}) == len(infos)
        assert not any(info is old for info in infos for old in self.seen)
        assert SHARED == {"z": 1}
        assert not any(info is SHARED for info in infos)
        self.seen = [*self.seen[-20:], *infos]
