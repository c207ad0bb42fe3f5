"""What an environment does with its agents, its infos and its randomness, seen while it plays."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pz_policymap.cli.check_contract import Make, failure_text
from pz_policymap.cli.findings import NOTE, OK, PROBLEM, Finding
from pz_policymap.cli.policies import RandomPolicy

# Who is there, observations, infos, rewards; of an AEC environment, what the one that has just moved had observed.
Step = tuple[list[Any], Mapping[Any, Any], Mapping[Any, Any], Mapping[Any, Any]]


def habit_findings(make: Make, api: str, info_key: str, steps: int) -> list[Finding]:
    """Returns what stands out in some episodes of random play.

    Args:
        make: Makes the environment, bare.
        api: "aec" or "parallel".
        info_key: The key of the tag.
        steps: How many steps to look at, at most.
    """
    env = make()
    habits = _Habits(info_key)
    try:
        for episode in range(3):
            before = _global_states()
            for step in _episode(env, api, episode, steps // 3):
                habits.see(step, first=habits.fresh)
            habits.over(bool(env.agents), _global_states() != before)
    except Exception as error:  # noqa: BLE001  # the environment's own
        text = f"it raises an error in random play: {failure_text(error)}"
        return [*habits.findings(env), Finding(PROBLEM, text, "mend the environment first", "environment")]
    env.close()
    return habits.findings(env)


class _Habits:
    """What has been seen so far."""

    def __init__(self, info_key: str) -> None:
        self.fresh = True
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
            found.append(Finding(PROBLEM, text, "RecordResults refuses the episode: mend the rewards", "environment"))
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
                self._lasting,
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


def replay_findings(make: Make, wrapped: Make, api: str, info_key: str, steps: int) -> list[Finding]:
    """Returns whether an episode plays alike in a fresh environment, in a used one, and wrapped."""
    from gymnasium.utils.env_checker import data_equivalence

    try:
        env = make()
        first, again, other, tagged = (_trace(one, api, info_key, steps) for one in (env, env, make(), wrapped()))
    except Exception as error:  # noqa: BLE001  # told by others already, if it is the environment's
        text = f"an episode cannot be replayed: {failure_text(error)}"
        return [Finding(PROBLEM, text, "mend the environment first", "environment")]
    if not data_equivalence(first, other):
        return [Finding(NOTE, "the same seed gives different episodes, so wrapped and bare cannot be compared")]
    found = []
    if not data_equivalence(first, again):
        found.append(
            Finding(
                PROBLEM,
                "reset(seed=s) plays another episode after it has played one than in a new environment",
                "reset must put back all that changes: else a resumed run, or more --jobs, play other games",
                "environment",
            )
        )
    if not data_equivalence(first, tagged):
        text = "wrapped, the same seed plays another episode than bare"
        found.append(Finding(PROBLEM, text, "please report it, with the environment", "pz_policymap"))
    return found or [Finding(OK, "wrapped it plays what it plays bare, and a seed replays it after other episodes")]


def _episode(env: Any, api: str, seed: int, steps: int) -> Iterator[Step]:
    """Plays an episode at random and yields what stands after `reset` and after each step."""
    act = RandomPolicy(env.action_space)
    act.begin(seed)
    if api == "aec":
        env.reset(seed=seed)
        yield list(env.agents), {}, env.infos, {}
        for _ in range(steps):
            if not env.agents:
                return
            observation, _, terminated, truncated, info = env.last()
            agent = env.agent_selection
            env.step(None if terminated or truncated else act(observation, agent, info))
            yield list(env.agents), {agent: observation}, env.infos, env.rewards
        return
    observations, infos = env.reset(seed=seed)
    yield list(env.agents), observations, infos, {}
    for _ in range(steps):
        if not env.agents:
            return
        actions = {agent: act(observations[agent], agent, infos.get(agent, {})) for agent in env.agents}
        observations, rewards, _, _, infos = env.step(actions)
        yield list(env.agents), observations, infos, rewards


def _trace(env: Any, api: str, info_key: str, steps: int) -> list[Any]:
    """Returns all that an episode with a fixed seed shows, but the tags."""
    trace = []
    for agents, observations, infos, rewards in _episode(env, api, 7, steps):
        bare = {
            str(agent): {key: value for key, value in infos.get(agent, {}).items() if key != info_key}
            for agent in dict.fromkeys([*infos, *observations, *agents])  # who has no info has an empty one, wrapped
        }
        seen = {str(agent): observation for agent, observation in observations.items()}
        paid = {str(agent): float(reward) for agent, reward in rewards.items()}
        trace.append(copy.deepcopy(([str(agent) for agent in agents], seen, bare, paid)))  # some are written to later
    return trace


def _global_states() -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002  # whether somebody uses it is the question
    return random.getstate(), kind, np.asarray(keys).tobytes(), *rest


def _some(agents: Any) -> str:
    """Returns a few names."""
    names = sorted(map(repr, agents))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
