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
    it has begun itself, for a broadcast is always a little late; about all others it believes what it is told. Where a
    checkpoint is restored, its numbers hold, though they be lower.

    Attributes:
        told: Whether the algorithm has spoken to this process. One to which it has not was restarted: it knows neither
            its numbers nor the current mapping, and a broadcast would bring it only the numbers.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.told = False
        self._restores = 0  # how often a checkpoint was restored; what is numbered before that is out of date
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

    def begin(self, environment: str, count: Count) -> None:
        """Takes down an episode that begins here, unless a checkpoint was restored since it was created."""
        last = self.last(environment)
        if count.episode == (0 if last is None else last.episode + 1):
            self._mine[environment] = count

    def end(self, environment: str, count: Count) -> None:
        """Takes down that an episode need not be played again, unless a checkpoint was restored since it began."""
        if self._mine.get(environment) == count:
            self._mine[environment] = count._replace(over=True)

    def tell(self, state: State) -> None:
        """Believes a state that the algorithm has sent together with its mapping."""
        self.set_state(state)
        self.told = True

    def learn(self, states: Iterable[State]) -> None:
        """Takes over what others know, the later episode of each environment."""
        self._restores, self._known = _latest([self.get_state(), *states])

    def get_state(self, *_: Any, **__: Any) -> State:
        """Returns where all environments stand; never empty, for RLlib would leave it out."""
        return _state(self._restores, {**self._known, **self._mine})

    def set_state(self, state: State) -> None:
        """Believes a state about the environments that have not begun an episode in this process.

        One from after a restored checkpoint is believed about all of them, and one from before it not at all.
        """
        restores, known = _latest([state])
        if restores > self._restores:
            self._mine = {}
        if restores >= self._restores:
            self._restores, self._known = restores, known

    def merge_states(self, states: Sequence[State]) -> State:
        """Returns the state with the later episode of each environment, this connector's own included."""
        return _state(*_latest([self.get_state(), *states]))

    def restore_from_path(self, path: Any, **kwargs: Any) -> None:
        """Goes back to the numbers of a checkpoint, and so do all processes that hear of it."""
        checkpoint = EpisodeCounters()
        super(EpisodeCounters, checkpoint).restore_from_path(path, **kwargs)
        restores = max(self._restores, checkpoint._restores) + 1
        self.set_state({**checkpoint.get_state(), "restores": restores})


def _state(restores: int, counts: Mapping[str, Count]) -> State:
    """Returns counts in plain types."""
    environments = {name: tuple(count) for name, count in counts.items()}
    return {"version": 1, "restores": restores, "environments": environments}


def _latest(states: Sequence[State]) -> tuple[int, dict[str, Count]]:
    """Returns how often a checkpoint was restored, and the later count of each environment since the last time."""
    for state in states:
        if state.get("version") != 1:
            raise ValueError(f"version of a state must be 1, got {state.get('version')!r}")
    restores = max(state["restores"] for state in states)
    latest: dict[str, Count] = {}
    for environments in (state["environments"] for state in states if state["restores"] == restores):
        for name, (episode, draw_episode, policies, redraws, over) in environments.items():
            count = Count(episode, draw_episode, tuple(policies), redraws, over)
            if name not in latest or (count.episode, count.over) > (latest[name].episode, latest[name].over):
                latest[name] = count
    return restores, latest
