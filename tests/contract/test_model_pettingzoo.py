"""PettingZoo's wrappers under every mapping, compared with an independent model of the contract.

Random environments (agents that die, respawn under their name, come late, never appear; infos empty, shared, missing,
with foreign keys; errors thrown from `reset` and `step`) meet random calls. With `test_model_gymnasium.py` and
`test_model_learner.py` a thousand examples; with `--hypothesis-profile=long` twenty times as many.
"""

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from tests import contract_model as contract
from tests.contract_model import NAMES, RULES, TEAMS, Score
from tests.machine import (
    CADENCES,
    FAILS,
    INDICES,
    KINDS,
    LIVE,
    PINS,
    RARELY,
    REWARDS,
    SEEDS,
    SOME,
    WEIGHTS,
    Elsewhere,
    Machine,
    episodes_of,
    examples,
    steps_of,
)
from tests.puppets import SHARED, PlannedError, PuppetAEC, PuppetParallel

RESETS = st.fixed_dictionaries(
    {
        "seed": SEEDS,
        "live": LIVE,
        "infos": KINDS,
        "fail": FAILS,
        "force": st.none() | st.sampled_from([*NAMES, "nobody"]),
        "policy": st.integers(0, 2),
        "meanwhile": st.none() | WEIGHTS,
    }
)


class PettingZooMachine(Machine):
    """One environment with several agents, with or without `possible_agents`."""

    @initialize(
        rule=RULES,
        generated=st.booleans(),
        cadence=CADENCES,
        seed=PINS,
        env_index=INDICES,
        team_of=st.sampled_from([None, TEAMS]),
    )
    def make(self, rule, generated, cadence, seed, env_index, team_of):
        self.possible = None if generated else NAMES
        self.bare = self.puppet(self.possible)
        self.open(rule, self.possible, cadence, seed, env_index)
        self.team_of = team_of
        self.set_out(self.bare)

    @property
    def plan(self):
        return self.policies.unwrapped.plan

    def reset(self, seed, live, infos, fail, force, policy, meanwhile):
        vars(self.plan).update(live=live, infos=infos, fail=fail)
        forced = {} if force is None else {force: policy}
        unknown = KeyError if force is not None and force not in (self.possible or live) else None
        was_reset = fail != "early" and not (self.possible and unknown)

        def begin(models):
            models[0].reset(seed if seed is not None or models[0].seed is not None else 0, live, forced)
            return models

        result = self.together(
            lambda: (self.env.reset(seed=seed, options={"policy_ids": forced} if forced else None), 1),
            unknown if self.possible else None,
            PlannedError if fail else None,
            unknown,
            begin=begin,
        )
        if result is not None:
            self.reset_needed = self.is_new = False
            self.score = Score(live)
            self.look(result[0], live)
            if meanwhile is not None:
                contract.turn(meanwhile)  # which does not change drawn assignments
        elif was_reset:
            self.reset_needed = True  # the environment was reset, but no episode has begun

    def ended(self):
        """The model's episode is over."""
        self.models[0].unfinished = False
        self.episodes.append(self.score.episode(self.models[0].policy_ids))

    def check_infos(self, infos, back):
        expected = self.models[0].policy_ids
        assert {agent: infos[agent]["policy_id"] for agent in back} == {agent: expected[agent] for agent in back}
        assert all(type(infos[agent]["policy_id"]) is int for agent in back)
        foreign = {key: info for key, info in infos.items() if key not in NAMES}
        assert all(info in (SHARED, "seventeen") for info in foreign.values())
        self.fresh([infos[agent] for agent in back])

    @invariant()
    def assignments_equal_those_of_the_model(self):
        if hasattr(self, "models") and not self.is_new:
            assert self.env.policy_ids == self.models[0].policy_ids or self.reset_needed


class ParallelMachine(PettingZooMachine):
    puppet = PuppetParallel

    STEPS = steps_of(live=SOME, infos=KINDS, rewards=REWARDS, truncated=st.booleans(), fail=RARELY)

    @rule(episodes=episodes_of(RESETS, STEPS))
    def episodes_go_by(self, episodes):
        self.play(episodes)

    @property
    def over(self):
        return not self.env.agents

    def step(self, live, infos, rewards, truncated, fail):
        before = list(self.env.agents)
        vars(self.plan).update(live=live, infos=infos, rewards=rewards, truncated=truncated, fail=fail)
        back = before + [agent for agent in live if agent not in before]

        def begin(models):
            models[0].appear(back)
            return models

        call = lambda: self.env.step(dict.fromkeys(before, 0))  # noqa: E731
        result = self.together(call, PlannedError if fail else None, begin=begin)
        if result is None:
            self.reset_needed = not fail
            self.models[0].unfinished &= bool(fail or live)
            return
        self.score.step(before, dict(zip(back, rewards, strict=False)))
        self.look(result, back)
        if not live:
            self.ended()

    def look(self, result, back):
        self.check_infos(result[-1], back)


class AECMachine(PettingZooMachine):
    puppet = PuppetAEC

    STEPS = steps_of(
        dies=SOME,
        comes=st.just([]) | SOME,
        turn=st.integers(0, 3),
        infos=KINDS,
        rewards=REWARDS,
        truncated=st.booleans(),
        fail=RARELY,
    )

    @rule(episodes=episodes_of(RESETS, STEPS))
    def episodes_go_by(self, episodes):
        self.play(episodes)

    @property
    def over(self):
        return not self.env.agents

    def step(self, dies, comes, turn, infos, rewards, truncated, fail):
        puppet = self.policies.unwrapped
        there, mover = list(puppet.agents), puppet.agent_selection
        if puppet.dead(mover):
            self.env.step(None)
            self.look(None, puppet.agents)
            return
        comes = [agent for agent in comes if agent not in there]
        after = there + comes
        dies = [agent for agent in dies if agent in after]
        vars(self.plan).update(
            dies=dies, comes=comes, turn=turn, infos=infos, rewards=rewards, truncated=truncated, fail=fail
        )

        def begin(models):
            models[0].appear(after)
            return models

        result = self.together(lambda: (self.env.step(0), 1), PlannedError if fail else None, begin=begin)
        if result is None:
            self.reset_needed = not fail
            if not fail:
                self.models[0].unfinished &= any(not puppet.dead(agent) for agent in puppet.agents)
            return
        self.score.step([mover], dict(zip(after, rewards, strict=False)))
        if all(puppet.dead(agent) for agent in after):
            self.ended()
        self.look(None, after)

    def look(self, result, back):
        for _ in range(2):  # reading twice must not matter
            self.check_infos(self.env.infos, list(back))
        if back:
            info = self.env.last(observe=False)[-1]
            assert info["policy_id"] == self.models[0].policy_ids[self.env.agent_selection]
            self.fresh([info])


def teardown_module():
    Elsewhere.end()


TestParallel = ParallelMachine.TestCase
TestParallel.settings = examples(320)
TestAEC = AECMachine.TestCase
TestAEC.settings = examples(280)
