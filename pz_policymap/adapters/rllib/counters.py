"""`EpisodeCounters`: the latest episode of each environment, sent and saved as the state of a connector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ray.rllib.connectors.connector_v2 import ConnectorV2

from pz_policymap.adapters.rllib.module_mapping import Assignment, Count

State = dict[str, Any]


class EpisodeCounters(ConnectorV2):
    """A connector that does not change the data. RLlib merges, broadcasts and saves the states of connectors.

    It must be the first connector: RLlib finds the states to merge by their position. A process uses its own count
    for episodes that it has begun itself, because broadcasts arrive late, and the received count for all others. After
    a checkpoint is restored, its lower numbers replace both.

    Attributes:
        received: Whether the algorithm has sent its state to this process. A process without it was restarted: it lacks
            the episode numbers and the current mapping, and a broadcast would bring only the numbers.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.received = False
        self._restores = 0  # number of restored checkpoints; counts from before the latest are outdated
        self._known: dict[str, Count] = {}
        self._mine: dict[str, Count] = {}

    def __call__(self, *, batch: dict[str, Any], episodes: Sequence[Any], **_: Any) -> dict[str, Any]:
        """Returns the batch unchanged, or raises an error if an episode has no assignment."""
        for episode in episodes:
            if not isinstance(episode.agent_to_module_mapping_fn, Assignment):
                raise TypeError(
                    f"agent_to_module_mapping_fn of an episode must be an Assignment, got "
                    f"{episode.agent_to_module_mapping_fn!r}; call configure() after config.callbacks() and "
                    f"config.multi_agent(), which replace its settings"
                )
        return batch

    def last(self, environment: str) -> Count | None:
        """Returns the latest count of an environment, or None before its first episode.

        An episode that was interrupted by the end of its process is repeated, with the same assignment.
        """
        if environment in self._mine:
            return self._mine[environment]
        count = self._known.get(environment)
        return count if count is None or count.over else count._replace(episode=count.episode - 1)

    def begin(self, environment: str, count: Count) -> None:
        """Counts an episode that begins here, unless a checkpoint was restored since it was created."""
        last = self.last(environment)
        if count.episode == (0 if last is None else last.episode + 1):
            self._mine[environment] = count

    def end(self, environment: str, count: Count) -> None:
        """Counts an episode as ended, unless a checkpoint was restored since it began."""
        if self._mine.get(environment) == count:
            self._mine[environment] = count._replace(over=True)

    def receive(self, state: State) -> None:
        """Takes over a state that the algorithm has sent together with its mapping."""
        self.set_state(state)
        self.received = True

    def learn(self, states: Iterable[State]) -> None:
        """Takes over the later episode of each environment from the states of other processes."""
        self._restores, self._known = _latest([self.get_state(), *states])

    def get_state(self, *_: Any, **__: Any) -> State:
        """Returns the counts of all environments; never empty, because RLlib drops empty states."""
        return _state(self._restores, {**self._known, **self._mine})

    def set_state(self, state: State) -> None:
        """Takes over the counts of environments that have not begun an episode in this process.

        A state from after a restored checkpoint replaces all counts; a state from before it is ignored.
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
        """Resumes from the numbers of a checkpoint, here and in all processes that receive this state."""
        checkpoint = EpisodeCounters()
        super(EpisodeCounters, checkpoint).restore_from_path(path, **kwargs)
        restores = max(self._restores, checkpoint._restores) + 1
        self.set_state({**checkpoint.get_state(), "restores": restores})


def _state(restores: int, counts: Mapping[str, Count]) -> State:
    """Returns counts in plain types."""
    environments = {name: tuple(count) for name, count in counts.items()}
    return {"version": 1, "restores": restores, "environments": environments}


def _latest(states: Sequence[State]) -> tuple[int, dict[str, Count]]:
    """Returns the number of restored checkpoints, and the later count of each environment since the last one."""
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
