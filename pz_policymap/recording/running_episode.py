"""What an episode has brought so far, and what is made of it when it is over."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from pz_policymap.arguments import MAX_INDEX, integer, text
from pz_policymap.mappings.groups import GroupOf, group_rule, seats_by_group
from pz_policymap.results.episode import Episode
from pz_policymap.results.sums import added

Score = Callable[[dict[Any, float], dict[Any, Any]], Mapping[Any, float]]


class Recording:
    """Makes an `Episode` of what the agents ended with, and hands it on.

    Args:
        sinks: Who gets it: objects with a `record` method, or functions.
        team_of: As in `record_results`.
        score: As in `record_results`.
        info_key: As in `record_results`.

    Raises:
        TypeError: If an argument is of another kind.
        ValueError: If there is no sink.
    """

    def __init__(self, sinks: Sequence[Any], team_of: GroupOf | None, score: Score | None, info_key: str) -> None:
        if not sinks:
            raise ValueError("sinks must name at least one, such as a Payoff, got none")
        self._sinks = [_receiver(sink) for sink in sinks]
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
    ) -> None:
        """Hands on an episode; all four by agent, in seat order. A sink that raises takes it from no other.

        Raises:
            ValueError: If an agent has no policy or no finite return, or if `score` leaves one out.
        """
        agents = tuple(returns)
        for agent in agents:
            if agent not in policies:
                raise self.untagged(agent)
            if not math.isfinite(returns[agent]):
                raise ValueError(f"rewards must be finite, those of agent {agent!r} sum to {returns[agent]}")
        scores = dict(returns)
        if self.score is not None:
            said = self.score(dict(returns), infos)
            if not isinstance(said, Mapping) or any(agent not in said for agent in agents):
                raise ValueError(
                    f"score must return a dict with a number for every agent of {list(agents)}, got {said!r}"
                )
            scores = {agent: said[agent] for agent in agents}
        episode = Episode(
            policies=[policies[agent] for agent in agents],
            returns=list(returns.values()),
            lengths=[lengths[agent] for agent in agents],
            sides=self._sides(agents),
            scores=list(scores.values()),
            agents=agents,
        )
        all_of([partial(sink, episode) for sink in self._sinks])

    def untagged(self, agent: Hashable) -> ValueError:
        """Returns the error about an agent whose infos name no policy."""
        return ValueError(
            f"infos of agent {agent!r} have no {self.info_key!r}, so nobody knows who played it: "
            f"record_results goes around the wrapper that writes it"
        )

    def _sides(self, agents: tuple[Any, ...]) -> Sequence[Hashable]:
        if self._team_of is None:
            return ()
        seats = seats_by_group("team_of", self._team_of, agents)
        team = {seat: name for name, of_team in seats.items() for seat in of_team}
        return [team[seat] for seat in range(len(agents))]


class Tally:
    """What the agents of one running episode have got so far; agents are seated as they come.

    Args:
        recording: What to do when it is over.
        agents: Who is there when it begins.
        infos: Their infos.
    """

    def __init__(self, recording: Recording, agents: Iterable[Any], infos: Mapping[Any, Any]) -> None:
        self._recording = recording
        self._sums: dict[Any, tuple[float, float]] = {}
        self._lengths: dict[Any, int] = {}
        self._policies: dict[Any, int] = {}
        self._infos: dict[Any, Any] = {}
        for agent in agents:
            self._seat(agent)
        self.read(infos)

    def knows(self, agent: Any) -> bool:
        """Returns whether the agent's policy has been seen."""
        return agent in self._policies

    def read(self, infos: Mapping[Any, Any], again: bool = False) -> None:
        """Takes the policies of agents from their infos, where they are not known yet.

        Args:
            infos: By agent; other keys may be there.
            again: Whether to look at those known, too: an agent whose policy has changed is an error.

        Raises:
            ValueError: If it has, which no policy wrapper does within an episode.
        """
        key = self._recording.info_key
        for agent in self._sums:
            if agent in self._policies and not again:
                continue
            info = infos.get(agent)
            if not isinstance(info, Mapping) or key not in info:
                continue
            policy = integer(f"infos[{agent!r}][{key!r}]", info[key], 0, MAX_INDEX)
            if self._policies.setdefault(agent, policy) != policy:
                raise ValueError(
                    f"infos of agent {agent!r} name policy {policy}, and {self._policies[agent]} before in the same "
                    f"episode: record_results goes inside a wrapper that resets the environment by itself"
                )
        if self._recording.score is not None:
            self._infos.update((agent, infos[agent]) for agent in self._sums if agent in infos)

    def acted(self, agents: Collection[Any]) -> None:
        """Counts a step for these agents.

        Raises:
            ValueError: If the policy of one is not known by now.
        """
        for agent in agents:
            if agent not in self._policies:
                raise self._recording.untagged(agent)
            self._lengths[agent] += 1

    def earn(self, rewards: Mapping[Any, Any]) -> None:
        """Adds rewards to the agents' returns; who is not seated yet has come late."""
        for agent, reward in rewards.items():
            if agent not in self._sums:
                self._seat(agent)
            if reward:
                self._sums[agent] = added(*self._sums[agent], float(reward))

    def finish(self) -> None:
        """Hands the episode on."""
        returns = {agent: total for agent, (total, _) in self._sums.items()}
        self._recording.finish(self._policies, returns, self._lengths, self._infos)

    def _seat(self, agent: Any) -> None:
        self._sums[agent] = 0.0, 0.0
        self._lengths[agent] = 0


def all_of(calls: Sequence[Callable[[], object]]) -> None:
    """Makes all of the calls, whatever they raise: a Ctrl-C is raised afterwards, or else the first error."""
    errors: list[BaseException] = []
    for call in calls:
        try:
            call()
        except BaseException as error:  # noqa: BLE001, PERF203  # one is raised below
            errors.append(error)
    if errors:
        raise min(errors, key=lambda error: isinstance(error, Exception))  # a Ctrl-C is none, and False comes first


def _receiver(sink: Any) -> Callable[[Episode], object]:
    """Returns what is called with an episode."""
    record = getattr(sink, "record", None)
    if callable(record):
        return record  # type: ignore[no-any-return]
    if callable(sink):
        return sink  # type: ignore[no-any-return]
    raise TypeError(f"sinks must have a record method or be functions of an Episode, got {sink!r}")
