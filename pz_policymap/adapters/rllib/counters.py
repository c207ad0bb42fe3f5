"""`EpisodeCounters`: where every environment stands, carried and saved as a connector's state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ray.rllib.connectors.connector_v2 import ConnectorV2

from pz_policymap.adapters.rllib.assignment import Assignment, Count

State = dict[str, Any]


class EpisodeCounters(ConnectorV2):
    """A connector that leaves the data alone. RLlib merges, broadcasts and saves the states of connectors.

    It must be the first: RLlib finds the states to merge by their place. A process knows best about the episodes that
    it has begun itself, for a broadcast is always a little late; about all others it believes what it is told.

    Attributes:
        told: Whether a state has come in. A runner to which none came was restarted and knows no episode numbers.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.told = False
        self._known: dict[str, Count] = {}
        self._mine: dict[str, Count] = {}

    def __call__(self, *, batch: dict[str, Any], episodes: Sequence[Any], **_: Any) -> dict[str, Any]:
        """Returns the batch as it is, of episodes that have an assignment."""
        for episode in episodes:
            if not isinstance(episode.agent_to_module_mapping_fn, Assignment):
                raise TypeError(
                    f"agent_to_module_mapping_fn of an episode must be an Assignment, got "
                    f"{episode.agent_to_module_mapping_fn!r}; call configure() after config.callbacks() and "
                    f"config.multi_agent(), which replace what it has set"
                )
        return batch

    def last(self, environment: str) -> Count | None:
        """Returns where an environment stands, or None before its first episode.

        An episode that was cut by the end of its process is played again, with its draw.
        """
        if environment in self._mine:
            return self._mine[environment]
        count = self._known.get(environment)
        return count if count is None or count.over else count._replace(episode=count.episode - 1)

    def set(self, environment: str, count: Count) -> None:
        """Takes down where an environment of this process stands."""
        self._mine[environment] = count

    def learn(self, states: Iterable[State]) -> None:
        """Takes over what others know, the later episode of each environment."""
        self._known = _latest([self.get_state(), *states])

    def get_state(self, *_: Any, **__: Any) -> State:
        """Returns where all environments stand; never empty, for RLlib would leave it out."""
        everything = {**self._known, **self._mine}
        return {"version": 1, "environments": {name: tuple(count) for name, count in everything.items()}}

    def set_state(self, state: State) -> None:
        """Believes a state about the environments that have not begun an episode in this process."""
        self._known = _latest([state])
        self.told = True

    def merge_states(self, states: Sequence[State]) -> State:
        """Returns the state with the later episode of each environment, this connector's own included."""
        latest = _latest([self.get_state(), *states])
        return {"version": 1, "environments": {name: tuple(count) for name, count in latest.items()}}

    def reset_state(self) -> None:
        """Keeps everything: a connector is reset between evaluations, and episodes go on."""


def _latest(states: Iterable[Mapping[str, Any]]) -> dict[str, Count]:
    """Returns the later count of each environment."""
    latest: dict[str, Count] = {}
    for state in states:
        for name, (episode, draw_episode, policies, redraws, over) in state["environments"].items():
            count = Count(episode, draw_episode, tuple(policies), redraws, over)
            if name not in latest or (count.episode, count.over) > (latest[name].episode, latest[name].over):
                latest[name] = count
    return latest
