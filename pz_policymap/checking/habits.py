"""Agents, observations, infos and randomness of an environment, observed in random play."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pz_policymap.checking.contract import Make, failure
from pz_policymap.checking.findings import NOTE, OK, PROBLEM, Finding
from pz_policymap.checking.random_play import Step, random_episode

_PATIENCE = 10  # the first episode may take this many times the steps asked for


def habit_findings(make: Make, api: str, info_key: str, steps: int) -> list[Finding]:
    """Returns what is unusual in some episodes of random play.

    Args:
        make: Makes the bare environment.
        api: "aec" or "parallel".
        info_key: The key of the tag.
        steps: Number of steps; the first episode may take ten times as many, so that one is seen to its end.
    """
    env = make()
    habits = _Habits(info_key, keeps_infos=api == "aec", space=getattr(env, "observation_space", None))
    doing = "in random play"
    try:
        for episode in range(3):
            before = _global_states()
            limit = steps // 3 if episode else _PATIENCE * steps
            for step in random_episode(env, api, episode, limit):
                habits.see(step, first=habits.fresh)
            habits.over(bool(env.agents), _global_states() != before)
        doing = "when it is closed"
        env.close()
    except Exception as error:  # noqa: BLE001  # any error is a finding
        return [*habits.findings(env), failure(f"it raises an error {doing}", error)]
    return habits.findings(env)


class _Habits:
    """The observations so far.

    Args:
        info_key: The key of the tag.
        keeps_infos: Whether info dicts are expected to persist from step to step.
        space: Returns the observation space of an agent.
    """

    def __init__(self, info_key: str, keeps_infos: bool, space: Callable[[Any], Any] | None) -> None:
        self.fresh = True
        self._space, self._outside = space, ""
        self._keeps_infos = keeps_infos
        self._info_key = info_key
        self._first: set[Any] = set()  # agents at the start of this episode
        self._kept: dict[Any, Any] = {}  # the previous info of each agent
        self._clash: Any = None
        self._late: set[Any] = set()
        self._agents: dict[Any, None] = {}
        self._without: set[Any] = set()
        self._strange: set[Any] = set()
        self._shared = self._lasting = self._endless = self._ended = self._global = self._infinite = False

    def see(self, step: Step, first: bool) -> None:
        """Looks at a step; the first of an episode is the state after `reset`."""
        agents, observations, infos, rewards = step
        for agent, observation in observations.items():
            if self._space is not None and not self._outside and not self._space(agent).contains(observation):
                self._outside = _outside_text(agent, observation, self._space(agent))
        if first:
            self._first, self._kept, self.fresh = set(agents), {}, False
        self._agents.update(dict.fromkeys(agents))
        self._late |= set(agents) - self._first
        self._without |= {agent for agent in agents if agent not in infos}
        dicts = {agent: info for agent, info in infos.items() if isinstance(info, Mapping)}
        self._strange |= set(infos) - set(self._agents)
        for agent, info in dicts.items():
            if self._info_key in info and self._clash is None:
                self._clash = agent, dict(info)
            self._lasting |= self._kept.get(agent) is info
        self._shared |= len({id(info) for info in dicts.values()}) < len(dicts)
        self._kept = dicts
        self._infinite |= any(not math.isfinite(float(reward)) for reward in rewards.values())

    def over(self, endless: bool, used_global: bool) -> None:
        """Records the end of an episode."""
        self.fresh = True
        self._endless |= endless
        self._ended |= not endless
        self._global |= used_global

    def findings(self, env: Any) -> list[Finding]:
        """Returns the findings."""
        found = []
        if self._clash:
            agent, info = self._clash
            found.append(
                Finding(
                    PROBLEM,
                    f"its infos already use the key {self._info_key!r}: that of {agent!r} is {info}",
                    "wrap with another key, wrap(..., info_key='assigned_policy'); nothing is overwritten",
                    "environment",
                )
            )
        if self._outside:
            advice = "fix the space or the observation; policies and trainers rely on the space"
            found.append(Finding(PROBLEM, self._outside, advice, "environment"))
        if self._infinite:
            text = "a reward is infinite or NaN"
            found.append(Finding(PROBLEM, text, "record_results refuses the episode: fix the rewards", "environment"))
        if not hasattr(env, "possible_agents"):
            text = "it has no possible_agents, so its agents are known only once they appear"
            lost = "Balanced, RoundRobin and Focal(rotate=True) need all seats and refuse it; other mappings work"
            found.append(Finding(NOTE, text, lost))
        notes = [
            (
                self._late,
                f"agents join mid-episode: {_some(self._late)}",
                "each gets the policy that it would have had from the start",
            ),
            (
                [agent for agent in self._agents if not isinstance(agent, str)],
                f"agents are not strings: {_some(agent for agent in self._agents if not isinstance(agent, str))}",
                "aec_to_parallel fails on them, and team_of='prefix' needs a dict or a function instead",
            ),
            (
                self._without,
                f"agents without an info: {_some(self._without)}",
                "wrapped, every agent has an info",
            ),
            (
                self._strange,
                f"infos have keys that are not agents: {_some(self._strange)}",
                "they pass untouched; parallel_to_aec nests them into the info of every agent, so wrap outside of it",
            ),
            (
                self._shared,
                "several agents share one info dict",
                "wrapped, each agent has its own; in the bare environment a write to one changes all",
            ),
            (
                self._lasting and not self._keeps_infos,
                "info dicts persist from step to step",
                "wrapped, each is new; in the bare environment what is written into them stays",
            ),
            (
                self._global,
                "it draws from the global generators of random or numpy.random",
                "episodes depend on other code that draws from them; use self.np_random, seeded in reset",
            ),
        ]
        found += [Finding(NOTE, text, advice) for there, text, advice in notes if there]
        if self._endless:
            text = "an episode of random play had not ended when the check stopped"
            advice = "results are recorded of whole episodes only; raise --steps, or set a limit with --set"
            found.append(Finding(NOTE, text, advice, unfinished=not self._ended))
        return found or [Finding(OK, "agents, observations, infos and randomness are fine")]


def _global_states() -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002  # the question is whether it is used
    return random.getstate(), kind, np.asarray(keys).tobytes(), *rest


def _some(agents: Any) -> str:
    """Returns a few names."""
    names = sorted(map(repr, agents))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _outside_text(agent: Any, observation: Any, space: Any) -> str:
    """Returns what is wrong with an observation."""
    if isinstance(observation, np.ndarray):
        shown = f"an array of dtype {observation.dtype}, shape {observation.shape}"
        if observation.size and observation.dtype.kind in "biuf":
            shown += f", values from {observation.min():.4g} to {observation.max():.4g}"
    else:
        shown = repr(observation)
    return f"the observation of {agent!r} is not in its space {space}: {shown}"
