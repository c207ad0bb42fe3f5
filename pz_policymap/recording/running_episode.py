"""`RunningEpisode` sums up an episode of a PettingZoo environment; `Recording` sends finished episodes to the sinks."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from pz_policymap.arguments import MAX_INDEX, integer, text
from pz_policymap.batching.nested_arrays import copied
from pz_policymap.mappings.groups import GroupOf, group_of_each_seat, group_rule
from pz_policymap.recording.rewards import reward_number
from pz_policymap.results.episode import Episode
from pz_policymap.results.sums import added

Score = Callable[[dict[Any, float], dict[Any, Any]], Mapping[Any, float]]


class Recording:
    """Makes an `Episode` of a finished episode and sends it to the sinks.

    Args:
        sinks: Objects with a `record` method, or functions.
        team_of: As in `record_results`.
        score: As in `record_results`.
        info_key: Key of the tag in each info.

    Raises:
        TypeError: If an argument has the wrong type.
    """

    def __init__(self, sinks: Sequence[Any], team_of: GroupOf | None, score: Score | None, info_key: str) -> None:
        self.sinks = tuple(_receiver(sink) for sink in sinks)
        self._team_of = None if team_of is None else group_rule("team_of", team_of)
        if score is not None and not callable(score):
            raise TypeError(f"score must be a function of returns and infos, got {score!r}")
        self.score = score
        self.info_key = text("info_key", info_key)

    def finish(
        self,
        policies: Mapping[Any, int],
        returns: Mapping[Any, float],
        lengths: Mapping[Any, int],
        infos: dict[Any, Any],
    ) -> Episode:
        """Makes an episode and sends it to all sinks, even if one of them raises.

        All arguments are dicts by agent, in seat order.

        Raises:
            ValueError: If an agent has no policy or no finite return, or is missing in the result of `score`.
        """
        agents = tuple(returns)
        for agent in agents:
            if agent not in policies:
                raise self.untagged(agent)
            if not math.isfinite(returns[agent]):
                raise ValueError(f"rewards must be finite, got the sum {returns[agent]} for agent {agent!r}")
        scores: dict[Any, float] = {}
        if self.score is not None:
            given = self.score(dict(returns), infos)
            if not isinstance(given, Mapping) or any(agent not in given for agent in agents):
                raise ValueError(
                    f"score must return a dict with a number for every agent of {list(agents)}, got {given!r}"
                )
            scores = {agent: given[agent] for agent in agents}
        episode = Episode(
            policies=[policies[agent] for agent in agents],
            returns=list(returns.values()),
            lengths=[lengths[agent] for agent in agents],
            sides=self._sides(agents),
            scores=list(scores.values()),
            agents=agents,
        )
        all_of([partial(sink, episode) for sink in self.sinks])
        return episode

    def untagged(self, agent: Hashable) -> ValueError:
        """Returns the error about an agent without a tag in its infos."""
        return ValueError(
            f"infos of agent {agent!r} must have the key {self.info_key!r}, got none: "
            f"call record_results on an environment that has a policy wrapper, and takes the same info_key"
        )

    def _sides(self, agents: tuple[Any, ...]) -> Sequence[Hashable]:
        if self._team_of is None:
            return ()
        return group_of_each_seat("team_of", self._team_of, agents)


class RunningEpisode:
    """Sums up returns, lengths and policies of the agents of one episode, in the order of their first appearance.

    Args:
        recording: Receives the finished episode.
        env: The environment, which has been reset.
        infos: The infos of its agents.

    Attributes:
        policies: Agent -> policy id, for the agents whose tag has been seen.
    """

    def __init__(self, recording: Recording, env: Any, infos: Mapping[Any, Any]) -> None:
        self.policies: dict[Any, int] = {}
        self._recording = recording
        self._env = env
        self._sums: dict[Any, tuple[float, float]] = dict.fromkeys(env.agents, (0.0, 0.0))
        self._lengths: dict[Any, int] = dict.fromkeys(env.agents, 0)
        self._infos: dict[Any, Any] = {}
        self.read(infos)

    def read(self, infos: Mapping[Any, Any]) -> None:
        """Reads the tags of agents whose policy is not known yet; keeps copies of all infos if a score needs them.

        Args:
            infos: By agent; keys that are not agents are ignored.
        """
        if len(self.policies) < len(self._sums):
            for agent in self._sums:
                if agent not in self.policies and (policy := self._tag(agent, infos)) is not None:
                    self.policies[agent] = policy
        if self._recording.score is not None:
            self._infos.update((agent, copied(infos[agent])) for agent in self._sums if agent in infos)

    def check_tags(self, infos: Mapping[Any, Any]) -> None:
        """Raises a ValueError if an agent is controlled by another policy than before in this episode."""
        for agent, before in self.policies.items():
            policy = self._tag(agent, infos)
            if policy is not None and policy != before:
                raise ValueError(
                    f"infos of agent {agent!r} must keep policy {before} within an episode, got policy {policy}: "
                    f"put record_results inside the wrapper that resets the environment by itself"
                )

    def acted(self, agents: Iterable[Any]) -> None:
        """Counts a step of some agents.

        Raises:
            ValueError: If the policy of one is still unknown.
        """
        policies, lengths = self.policies, self._lengths
        for agent in agents:
            if agent not in policies:
                raise self._recording.untagged(agent)
            lengths[agent] += 1

    def earn(self, rewards: Mapping[Any, Any], infos: Mapping[Any, Any] | None = None) -> None:
        """Adds rewards to the returns; an agent that is new joins the episode.

        Args:
            rewards: By agent; keys that are not agents are ignored.
            infos: By agent, to recognise agents by their tags; None: the infos of the environment.

        Raises:
            ValueError: If a reward is not a number.
        """
        sums = self._sums
        for agent, reward in rewards.items():
            if agent not in sums:
                if not self._is_agent(agent, infos):
                    continue
                sums[agent], self._lengths[agent] = (0.0, 0.0), 0
            number = reward_number(agent, reward)
            if number:
                sums[agent] = added(*sums[agent], number)

    def finish(self) -> Episode:
        """Sends the episode to the sinks, and returns it."""
        returns = {agent: total for agent, (total, _) in self._sums.items()}
        return self._recording.finish(self.policies, returns, self._lengths, self._infos)

    def _tag(self, agent: Any, infos: Mapping[Any, Any]) -> int | None:
        key, info = self._recording.info_key, infos.get(agent)
        if not isinstance(info, Mapping) or key not in info:
            return None
        return integer(f"infos[{agent!r}][{key!r}]", info[key], 0, MAX_INDEX)

    def _is_agent(self, agent: Any, infos: Mapping[Any, Any] | None) -> bool:
        """Returns whether a key is an agent; others, such as "__all__", appear in dicts of some environments."""
        env = self._env
        if agent in env.agents or agent in (getattr(env, "possible_agents", None) or ()):
            return True
        return self._tag(agent, env.infos if infos is None else infos) is not None


def follow_ends(ended: set[Any], terminations: Mapping[Any, Any], truncations: Mapping[Any, Any]) -> None:
    """Updates the agents that have ended with the flags of one step of a Parallel environment.

    Args:
        ended: The agents that had ended before the step. One that has returned under its name is removed.
        terminations: By agent.
        truncations: By agent.

    Example:
        >>> ended = {"a"}
        >>> follow_ends(ended, {"a": False, "b": True}, {"a": False, "b": False})
        >>> ended
        {'b'}
    """
    if ended or any(terminations.values()) or any(truncations.values()):
        for agent in terminations.keys() | truncations.keys():
            if terminations.get(agent, False) or truncations.get(agent, False):
                ended.add(agent)
            else:
                ended.discard(agent)


def all_of(calls: Sequence[Callable[[], object]]) -> None:
    """Makes all calls even if some raise, then raises a KeyboardInterrupt if there was one, or else the first error."""
    errors: list[BaseException] = []
    for call in calls:
        try:
            call()
        except BaseException as error:  # noqa: BLE001, PERF203  # one of them is raised below
            errors.append(error)
    if errors:
        raise min(errors, key=lambda error: isinstance(error, Exception))  # False sorts first


def _receiver(sink: Any) -> Callable[[Episode], object]:
    """Returns the function that receives the episodes of a sink."""
    if isinstance(sink, type):
        raise TypeError(f"sinks must be objects, got the class {sink.__name__}: pass an instance of it")
    record = getattr(sink, "record", None)
    if callable(record):
        return record  # type: ignore[no-any-return]
    if callable(sink):
        return sink  # type: ignore[no-any-return]
    raise TypeError(f"sinks must have a record method or be functions of an Episode, got {sink!r}")
