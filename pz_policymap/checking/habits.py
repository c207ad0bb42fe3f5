"""Observations, infos, rewards and randomness of an environment, as seen in random play."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pz_policymap.checking.contract import Make, failure
from pz_policymap.checking.findings import NOTE, OK, PROBLEM, Finding
from pz_policymap.checking.random_play import Step, random_episode
from pz_policymap.recording.rewards import reward_number
from pz_policymap.wrappers.find import find_assigner

_PATIENCE = 10  # the first episode may take this many times the steps asked for


def habit_findings(make: Make, api: str, info_key: str, steps: int) -> list[Finding]:
    """Returns what would disturb assignments, recording or learning, as seen in some episodes of random play.

    Args:
        make: Makes the bare environment.
        api: "aec" or "parallel".
        info_key: The key of the tag.
        steps: Number of steps; the first episode may take ten times as many, so that one is seen to its end.
    """
    env = make()
    habits = _Habits(info_key, getattr(env, "observation_space", None))
    doing = "in random play"
    try:
        for episode in range(3):
            before = _global_states()
            habits.begin()
            for step in random_episode(env, api, episode, steps // 3 if episode else _PATIENCE * steps):
                habits.see(step)
            habits.end(api, bool(env.agents), _global_states() != before)
        doing = "when it is closed"
        env.close()
    except Exception as error:  # noqa: BLE001  # any error is a finding
        seen = [finding for finding in habits.findings(env) if finding.level != OK]
        return [*_wrapped(env), *seen, failure(f"it raises an error {doing}", error)]
    return [*_wrapped(env), *habits.findings(env)]


class _Habits:
    """The observations so far.

    Args:
        info_key: The key of the tag.
        space: Returns the observation space of an agent.
    """

    def __init__(self, info_key: str, space: Callable[[Any], Any] | None) -> None:
        self._info_key = info_key
        self._space = space
        self._agents: set[Any] = set()
        self._clash: Any = None
        self._outside = self._vector = self._unequal = ""
        self._endless = self._ended = self._global = self._infinite = False

    def begin(self) -> None:
        """Begins an episode."""
        self._earned: dict[Any, float] = {}  # sums of `rewards`
        self._paid: dict[Any, float] = {}  # sums of the rewards of `last()`

    def see(self, step: Step) -> None:
        """Looks at what `reset` or a step has shown."""
        self._agents.update(step.agents)
        for agent, observation in step.observations.items():  # other keys than agents are allowed
            if self._space is not None and not self._outside and agent in self._agents:
                space = self._space(agent)
                if not space.contains(observation):
                    self._outside = _outside_text(agent, observation, space)
        for agent, info in step.infos.items():
            if isinstance(info, Mapping) and self._info_key in info and self._clash is None:
                self._clash = agent, dict(info)
        self._add(self._earned, step.rewards)
        self._add(self._paid, step.last)

    def end(self, api: str, endless: bool, used_global: bool) -> None:
        """Ends an episode."""
        self._endless |= endless
        self._ended |= not endless
        self._global |= used_global
        if api == "aec" and not endless and not self._unequal:
            for agent, earned in self._earned.items():
                paid = self._paid.get(agent, 0.0)
                if not math.isclose(earned, paid, rel_tol=1e-6, abs_tol=1e-6):
                    self._unequal = f"{agent!r} earned {earned:.6g} by its rewards and {paid:.6g} by last()"
                    return

    def _add(self, sums: dict[Any, float], rewards: Mapping[Any, Any]) -> None:
        for agent, reward in rewards.items():
            if agent in self._agents:
                try:
                    number = reward_number(agent, reward)
                except ValueError as error:
                    self._vector = self._vector or str(error)
                    continue
                self._infinite |= not math.isfinite(number)
                sums[agent] = sums.get(agent, 0.0) + number

    def findings(self, env: Any) -> list[Finding]:
        """Returns the findings."""
        found = []
        for fault, text, advice in self._problems():
            if fault:
                taken = tuple(map(str, self._clash[1])) if fault is self._clash else ()
                found.append(Finding(PROBLEM, text, advice, "environment", taken=taken))
        for sight, text, advice in self._notes(env):
            if sight:
                found.append(Finding(NOTE, text, advice))
        if self._endless:
            text = "an episode of random play had not ended when the check stopped"
            advice = "results are recorded of whole episodes only; raise --steps, or set a limit with --set"
            found.append(Finding(NOTE, text, advice, unfinished=not self._ended))
        return found or [Finding(OK, "observations, infos, rewards and randomness are fine")]

    def _problems(self) -> list[tuple[Any, str, str]]:
        agent, info = self._clash or (None, None)
        return [
            (
                self._clash,
                f"its infos already use the key {self._info_key!r}: that of {agent!r} is {info}",
                "wrap with another key, wrap(..., info_key='assigned_policy'); nothing is overwritten",
            ),
            (self._outside, self._outside, "fix the space or the observation; policies and trainers rely on the space"),
            (self._infinite, "a reward is infinite or NaN", "record_results refuses the episode: fix the rewards"),
        ]

    def _notes(self, env: Any) -> list[tuple[Any, str, str]]:
        return [
            (
                not hasattr(env, "possible_agents"),
                "it has no possible_agents, so its agents are known only once they appear",
                "Balanced, RoundRobin and Focal(rotate=True) need all seats and refuse it; other mappings work",
            ),
            (self._vector, self._vector, "assignments work; recorders and learners refuse such a reward"),
            (
                self._unequal,
                f"rewards and cumulative rewards disagree: {self._unequal} in an episode",
                "recorders and learners count `rewards`; a trainer that reads last() learns from other returns",
            ),
            (
                self._global,
                "it draws from the global generators of random or numpy.random",
                "episodes depend on other code that draws from them; use self.np_random, seeded in reset",
            ),
        ]


def _wrapped(env: Any) -> list[Finding]:
    """Returns a note on an environment that comes with a policy wrapper of a pinned seed."""
    try:
        assigner = find_assigner(env)
    except ValueError:
        return []
    if not assigner.pinned:
        return []
    text = f"it is wrapped already, with seed {assigner.seed} and env_index {assigner.env_index}"
    return [Finding(NOTE, text, "all copies of it get the same assignments; pm.env_fns gives each its own index")]


def _global_states() -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002  # the question is whether it is used
    return random.getstate(), kind, np.asarray(keys).tobytes(), *rest


def _outside_text(agent: Any, observation: Any, space: Any) -> str:
    """Returns what is wrong with an observation."""
    if isinstance(observation, np.ndarray):
        shown = f"an array of dtype {observation.dtype}, shape {observation.shape}"
        if observation.size and observation.dtype.kind in "biuf":
            shown += f", values from {observation.min():.4g} to {observation.max():.4g}"
    else:
        shown = repr(observation)
    return f"the observation of {agent!r} is not in its space {space}: {shown}"
