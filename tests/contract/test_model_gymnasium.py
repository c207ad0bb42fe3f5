"""Gymnasium's single and vector wrappers, compared with the model; see `tests/contract_model.py`."""

import copy

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from pz_policymap.wrappers.autoreset import Autoreset
from tests.contract_model import NAMES, RULES, Score
from tests.machine import (
    CADENCES,
    INDICES,
    KINDS,
    PINS,
    RARELY,
    REWARDS,
    SEEDS,
    Elsewhere,
    Machine,
    episodes_of,
    examples,
    steps_of,
)
from tests.puppets import PlannedError, PuppetEnv, PuppetVector
from tests.vector_envs import KNOWS_MODES


class EnvMachine(Machine):
    """A `gymnasium.Env`, which has one agent and no ledger."""

    records = False

    @initialize(rule=RULES, cadence=CADENCES, seed=PINS, env_index=INDICES)
    def make(self, rule, cadence, seed, env_index):
        self.bare = PuppetEnv()
        self.open(rule, ["agent_0"], cadence, seed, env_index)

    RESETS = st.fixed_dictionaries(
        {"seed": SEEDS, "infos": KINDS, "fail": RARELY, "force": st.none() | st.integers(0, 2), "named": st.booleans()}
    )
    STEPS = steps_of(over=RARELY, truncated=st.booleans(), infos=KINDS, fail=RARELY)

    @rule(episodes=episodes_of(RESETS, STEPS))
    def episodes_go_by(self, episodes):
        self.play(episodes)

    def reset(self, seed, infos, fail, force, named):
        vars(self.env.unwrapped.plan).update(infos=infos, fail=fail)
        forced = {} if force is None else {"agent_0": force}
        options = {"policy_ids": forced if named else force} if forced else None

        def begin(models):
            models[0].reset(seed if seed is not None or models[0].seed is not None else 0, forced=forced)
            return models

        call = lambda: self.env.reset(seed=seed, options=options)  # noqa: E731
        result = self.together(call, PlannedError if fail else None, begin=begin)
        if result is not None:
            self.reset_needed = self.is_new = False
            self.look(result[-1])
        elif not fail:
            self.reset_needed = True

    def step(self, over, truncated, infos, fail):
        vars(self.env.unwrapped.plan).update(over=over, truncated=truncated, infos=infos, fail=fail)
        result = self.together(lambda: self.env.step(0), PlannedError if fail else None, begin=lambda models: models)
        if result is not None:
            self.models[0].unfinished = not over
            self.reset_needed = over
            self.look(result[-1])

    def look(self, info):
        expected = self.models[0].policy_ids["agent_0"]
        assert (info["policy_id"], self.env.policy_ids) == (expected, expected)
        assert type(info["policy_id"]) is int
        self.fresh([info])


class VectorMachine(Machine):
    """A vector environment in any autoreset mode, with one or several rows per environment."""

    is_vector = True

    @initialize(
        rule=RULES,
        cadence=CADENCES,
        seed=PINS,
        env_index=INDICES,
        num_envs=st.integers(1, 3),
        seats=st.integers(1, 3),
        named=st.booleans(),
        mode=st.sampled_from(
            ["NextStep", "SameStep", "Disabled", "listed", "by hand"] if KNOWS_MODES else ["NextStep"]
        ),
    )
    def make(self, rule, cadence, seed, env_index, num_envs, seats, named, mode):
        self.seats, self.kind = seats, mode
        agents = NAMES[:seats] if named else [f"agent_{i}" for i in range(seats)]
        declared = {"listed": "SameStep", "by hand": "NextStep"}.get(mode, mode)
        self.mode = "Disabled" if mode == "by hand" else declared
        self.bare = PuppetVector(num_envs * seats, Autoreset(declared), listed=mode == "listed")
        extra = {"autoreset_mode": "Disabled"} if mode == "by hand" else {}
        self.recording = {"agents": agents}
        self.open(rule, agents, cadence, seed, env_index, num_envs, {"agents": agents if named else seats, **extra})
        self.agents, self.due, self.kept = agents, set(), []
        self.begun()

    def forget(self):
        self.begun()

    def begun(self, envs=None):
        """Begins episodes: no row has ended, and all returns are 0."""
        if envs is None:
            self.ends = np.zeros((self.num_envs, self.seats), bool)
            self.scores, self.playing = [None] * self.num_envs, set()
        for env in range(self.num_envs) if envs is None else envs:
            self.ends[env] = False
            self.scores[env] = Score(self.agents)
            self.playing.add(env)
            self.due.discard(env)

    def finish(self, env):
        """Records the finished episode of an environment, unless it is already recorded."""
        if env in self.playing:
            self.playing.discard(env)
            self.episodes.append(self.scores[env].episode(self.models[env].policy_ids))

    RESETS = st.fixed_dictionaries(
        {
            "seed": SEEDS | st.sampled_from(["list", "gaps"]),
            "infos": KINDS,
            "fail": RARELY,
            "mask": st.none() | st.lists(st.booleans(), min_size=3, max_size=3),
            "forced": st.none() | st.sampled_from(["all", "dict", "rows"]),
            "policies": st.lists(st.integers(-1, 2), min_size=9, max_size=9),
        }
    )
    STEPS = steps_of(
        ends=st.sets(st.integers(0, 8)),
        by_hand=st.lists(st.booleans(), min_size=3, max_size=3),
        infos=KINDS,
        rewards=REWARDS,
        truncated=st.booleans(),
        fail=RARELY,
    )

    @rule(episodes=episodes_of(RESETS, STEPS))
    def episodes_go_by(self, episodes):
        self.play(episodes)

    def reset(self, seed, infos, fail, mask, forced, policies):
        vars(self.policies.unwrapped.plan).update(infos=infos, fail=fail)
        rows = self.num_envs * self.seats
        if mask is not None:
            mask = np.array(mask[: self.num_envs])
            if self.reset_needed or self.kind == "listed":
                mask = None
        chosen = list(range(self.num_envs)) if mask is None else np.flatnonzero(mask).tolist()
        seeds = {"list": list(range(5, 5 + rows)), "gaps": [None, *range(rows - 1)]}.get(seed, seed)
        ours = None if mask is not None or seed == "gaps" else seeds
        matchup = [policies[: self.seats]] * self.num_envs
        options = {}
        if forced == "all":
            options["policy_ids"] = 2
            matchup = [[2] * self.seats] * self.num_envs
        elif forced == "dict":
            options["policy_ids"] = {a: p for a, p in zip(self.agents, policies, strict=False) if p >= 0}
        elif forced == "rows":
            options["policy_ids"] = np.array(policies[:rows])
            matchup = np.reshape(policies[:rows], (self.num_envs, self.seats)).tolist()
        if mask is not None:
            options["reset_mask"] = np.repeat(mask, self.seats)

        def begin(models):
            for env in chosen:
                laid = {a: p for a, p in zip(self.agents, matchup[env], strict=True) if forced and p >= 0}
                models[env].reset(ours if ours is not None or models[env].seed is not None else 0, forced=laid)
            if ours is not None:
                for model in models:
                    model.seed = model.seed if model.pinned else ours
            return models

        over = [env for env in chosen if self.ends[env].all()]
        past = copy.deepcopy(self.models)
        given = None if seeds is None else seeds
        call = lambda: self.env.reset(seed=given, options=options or None)  # noqa: E731
        result = self.together(call, PlannedError if fail else None, begin=begin)
        if result is None:
            if not fail:
                self.a_draw_failed()
            return
        present, self.models = self.models, past
        for env in over:
            self.finish(env)  # where rows may respawn, only the reset confirms an end
        self.models = present
        self.begun(chosen)
        self.reset_needed = self.is_new = False
        self.look(result[-1], {})

    def step(self, ends, by_hand, infos, rewards, truncated, fail):
        puppet = self.policies.unwrapped
        vars(puppet.plan).update(ends=ends, infos=infos, rewards=[*rewards, 0, 1, 0], truncated=truncated, fail=fail)
        done = np.isin(np.arange(puppet.num_envs), list(ends))
        if puppet.mode == "NextStep":
            done &= ~puppet.ended
        done = done.reshape(self.num_envs, self.seats)
        due = set(self.due)
        ended = self.ends.copy()
        ended[list(due)] = False
        ended |= done
        over = [env for env in range(self.num_envs) if done[env].any() and ended[env].all()]
        begins = over if self.mode == "SameStep" else sorted(due)

        def begin(models):
            for env in begins:
                models[env].reset()
            return models

        before = copy.deepcopy(self.models)
        call = lambda: self.env.step(np.zeros(puppet.num_envs, int))  # noqa: E731
        result = self.together(call, PlannedError if fail else None, begin=begin)
        if result is None:
            if not fail:
                self.a_draw_failed()
                for env in over:
                    self.models[env].unfinished = False
            return
        self.begun(due)
        for env in range(self.num_envs):
            if env not in begins or self.mode == "SameStep":
                earned = dict(zip(self.agents, [*rewards, 0, 1, 0][env * self.seats :], strict=False))
                acting = [a for a, out in zip(self.agents, self.ends[env], strict=True) if not out]
                self.scores[env].step(acting, earned)
        self.ends = ended
        finished = {}
        for env in over:
            after = self.models[env]
            self.models[env] = before[env] if self.mode == "SameStep" else after
            finished[env] = self.models[env].policy_ids
            if self.kind != "by hand":
                self.finish(env)
            self.models[env].unfinished = False
            self.models[env] = after
        if self.mode == "SameStep":
            self.begun(over)
        elif self.mode == "NextStep":
            self.due |= set(over)
        self.look(result[-1], finished if self.mode == "SameStep" else {}, done, before)
        if self.kind == "by hand":
            self.end_episodes(by_hand, as_mask=truncated)

    def a_draw_failed(self):
        """A draw failed, so some episodes have no assignment and all environments must be reset."""
        for call in (lambda: self.env.step(np.zeros(self.env.num_envs, int)), lambda: self.policies.end_episodes([0])):
            with pytest.raises(ResetNeeded, match="before reset" if self.is_new else "the last reset or step failed"):
                call()
        self.reset_needed = True

    def end_episodes(self, chosen, as_mask):
        mask = np.array(chosen[: self.num_envs])
        envs = np.flatnonzero(mask).tolist()

        def begin(models):
            for env in envs:
                models[env].reset()
            return models

        before = self.models
        call = lambda: (self.env.end_episodes(mask if as_mask else envs), 1)  # noqa: E731
        if self.together(call, begin=begin) is None:
            return
        present, self.models = self.models, before
        for env in envs:
            self.finish(env)
        self.models = present
        self.begun(envs)

    def look(self, infos, finished, done=None, before=None):
        """Compares infos with the models: the policies in control now, and those of episodes that this step ended."""
        now = [policy for model in self.models for policy in self.in_order(model.policy_ids)]
        assert self.env.policy_ids.tolist() == now
        if isinstance(infos, list):
            self.fresh(infos)
            assert [info["policy_id"] for info in infos] == now
            for env, played in finished.items():
                rows = infos[env * self.seats : (env + 1) * self.seats]
                assert [info["final_info"]["policy_id"] for info in rows] == self.in_order(played)
            return
        self.fresh([infos])
        assert infos["policy_id"].tolist() == now
        assert infos["_policy_id"].all()
        self.keep(infos["policy_id"])
        if before is not None and (finished or "final_info" in infos):
            final = infos["final_info"]
            assert final["policy_id"].tolist() == [p for model in before for p in self.in_order(model.policy_ids)]
            rows = np.isin(np.arange(self.num_envs), list(finished))[:, None].repeat(self.seats, axis=1)
            assert final["_policy_id"].tolist() == (rows | done).ravel().tolist() or "w" not in final
            self.fresh([final])

    def in_order(self, policy_ids):
        return [policy_ids[agent] for agent in self.agents]

    def keep(self, array):
        assert not array.flags.writeable
        self.kept.append((array, array.tolist()))

    def teardown(self):
        for array, said in getattr(self, "kept", []):
            assert array.tolist() == said  # replaced, never written to
        super().teardown()


def teardown_module():
    Elsewhere.end()


TestEnv = EnvMachine.TestCase
TestEnv.settings = examples(100)
TestVector = VectorMachine.TestCase
TestVector.settings = examples(300)
