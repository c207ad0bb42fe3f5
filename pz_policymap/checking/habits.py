"""What an environment does with its agents, its infos and its randomness, seen while it plays."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from pz_policymap.checking.contract import Make, failure_text
from pz_policymap.checking.findings import NOTE, OK, PROBLEM, Finding
from pz_policymap.checking.random_play import Step, random_episode


def habit_findings(make: Make, api: str, info_key: str, steps: int) -> list[Finding]:
    """Returns what stands out in some episodes of random play.

    Args:
        make: Makes the environment, bare.
        api: "aec" or "parallel".
        info_key: The key of the tag.
        steps: How many steps to look at, at most.
    """
    env = make()
    habits = _Habits(info_key, keeps_infos=api == "aec")
    doing = "in random play"
    try:
        for episode in range(3):
            before = _global_states()
            for step in random_episode(env, api, episode, steps // 3):
                habits.see(step, first=habits.fresh)
            habits.over(bool(env.agents), _global_states() != before)
        doing = "when it is closed"
        env.close()
    except Exception as error:  # noqa: BLE001  # the environment's own
        text = f"it raises an error {doing}: {failure_text(error)}"
        return [*habits.findings(env), Finding(PROBLEM, text, "fix the environment first", "environment")]
    return habits.findings(env)


class _Habits:
    """What has been seen so far."""

    def __init__(self, info_key: str, keeps_infos: bool) -> None:
        self.fresh = True
        self._keeps_infos = keeps_infos  # AEC environments do, by their nature
        self._info_key = info_key
        self._first: set[Any] = set()  # who was there when this episode began
        self._kept: dict[Any, Any] = {}  # the info that each agent had before
        self._clash: Any = None
        self._late: set[Any] = set()
        self._agents: dict[Any, None] = {}
        self._without: set[Any] = set()
        self._strange: set[Any] = set()
        self._shared = self._lasting = self._endless = self._global = self._infinite = False

    def see(self, step: Step, first: bool) -> None:
        """Looks at a step; at the first of an episode, at what `reset` has left."""
        agents, _, infos, rewards = step
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
        """Notes how an episode ended."""
        self.fresh = True
        self._endless |= endless
        self._global |= used_global

    def findings(self, env: Any) -> list[Finding]:
        """Returns all of it in words."""
        found = []
        if self._clash:
            agent, info = self._clash
            found.append(
                Finding(
                    PROBLEM,
                    f"its infos use the key {self._info_key!r} themselves: that of {agent!r} is {info}",
                    "wrap with another key, wrap(..., info_key='assigned_policy'); nothing is overwritten",
                    "environment",
                )
            )
        if self._infinite:
            text = "a reward is infinite or NaN"
            found.append(Finding(PROBLEM, text, "record_results refuses the episode: fix the rewards", "environment"))
        if not hasattr(env, "possible_agents"):
            text = "it has no possible_agents, so its agents are known only as they come"
            lost = "Balanced, RoundRobin and Focal(rotate=True) must know all seats and refuse it; all others work"
            found.append(Finding(NOTE, text, lost))
        notes = [
            (
                self._late,
                f"agents come late: {_some(self._late)}",
                "each is given the policy that it would have had from the start",
            ),
            (
                [agent for agent in self._agents if not isinstance(agent, str)],
                f"agents are no strings: {_some(agent for agent in self._agents if not isinstance(agent, str))}",
                "aec_to_parallel fails on them, and team_of='prefix' needs a dict or a function instead",
            ),
            (
                self._without,
                f"agents without an info: {_some(self._without)}",
                "wrapped, every agent has one",
            ),
            (
                self._strange,
                f"infos have keys that are no agents: {_some(self._strange)}",
                "they pass untouched; parallel_to_aec nests them into every agent's, so wrap outside of it",
            ),
            (
                self._shared,
                "one info dict is handed to several agents",
                "wrapped, each has its own; whoever writes into the bare ones writes into all",
            ),
            (
                self._lasting and not self._keeps_infos,
                "info dicts live on from step to step",
                "wrapped, each is new; what is written into the bare ones stays there",
            ),
            (
                self._global,
                "it draws from the global generators of random or numpy.random",
                "its episodes depend on whatever else draws; assignments do not. Use self.np_random, seeded in reset",
            ),
            (
                self._endless,
                "an episode of random play had not ended when we stopped looking",
                "results are recorded of whole episodes only; see --steps, or give it a limit with --set",
            ),
        ]
        found += [Finding(NOTE, text, advice) for there, text, advice in notes if there]
        return found or [Finding(OK, "agents, infos and randomness are as they should be")]


def _global_states() -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002  # whether somebody uses it is the question
    return random.getstate(), kind, np.asarray(keys).tobytes(), *rest


def _some(agents: Any) -> str:
    """Returns a few names."""
    names = sorted(map(repr, agents))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
