"""`BatchRecorder`: records the episodes of many environments that are stepped together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.arguments import row_numbers
from pz_policymap.batching.nested_arrays import (
    array_for,
    copied,
    index_for,
    is_jax,
    is_tensor,
    on_host,
    rows_of,
    with_values,
)
from pz_policymap.recording.running_episode import Recording, all_of
from pz_policymap.results.sums import added
from pz_policymap.wrappers.vector_episodes import Envs, StepChange, VectorEpisodes
from pz_policymap.wrappers.vector_wrapper import VectorPolicyWrapper


class BatchRecorder:
    """Sums up the rewards of each row, and sends the episode of an environment to the sinks when all its rows ended.

    The episodes that are running when the recorder is attached are not recorded. If an environment has several rows and
    no policy wrapper outside the vectorizer tells when they end, recording begins with the next reset.

    Rewards are summed where they are; only the returns of finished episodes are moved to the host. A subclass reads
    the layout of its environment: rewards, tags and terminal infos by row.
    """

    env: Any

    def _record_into(self, recording: Recording, agents: Sequence[Any], episodes: VectorEpisodes) -> None:
        """Sets up the recorder; called once, by the constructor of a subclass."""
        self._recording = recording
        self._agents = tuple(agents)
        self._episodes = episodes
        self._tagger = next((layer for layer in layers_of(self.env) if isinstance(layer, VectorPolicyWrapper)), None)
        followed = episodes.num_envs == len(episodes.ended)  # one row each, whose flag ends the episode
        if self._tagger is not None:
            episodes.inner = self._tagger.episodes
            if episodes.inner.num_envs == episodes.num_envs:
                episodes.continue_from(episodes.inner)
                followed = True
        self._followed = np.full(episodes.num_envs, followed)  # environments whose next episode is sure to be whole
        num_rows = len(episodes.ended)
        self._rows = np.arange(num_rows).reshape(episodes.num_envs, -1)  # of each environment
        self._open = np.zeros(episodes.num_envs, np.bool_)  # environments with an episode that is not recorded yet
        self._policies = np.zeros(num_rows, np.int64)
        self._returns: Any = (np.zeros(num_rows), np.zeros(num_rows))  # rounded, and what rounding lost
        self._lengths = np.zeros(num_rows, np.int64)
        self._infos: dict[int, Any] = {}  # the terminal infos of each row, where a score needs them

    def __repr__(self) -> str:
        return f"<{type(self).__name__}<{self.env!r}>>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "env":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.env, name)

    @property
    def sinks(self) -> tuple[Any, ...]:
        """The functions that receive each episode."""
        return self._recording.sinks

    def end_episodes(self, envs: ArrayLike) -> Any:
        """Records the episodes of some environments and begins their next; see `PolicyMapVector.end_episodes`."""
        policy_ids = self.env.end_episodes(envs)
        over = row_numbers("envs", on_host(envs), len(self._rows))
        finished = self._finished(over)
        self._followed[over] = True
        self._episodes.begin(over)
        all_of([partial(self._begin, over, on_host(policy_ids).reshape(-1)[self._rows[over].reshape(-1)]), *finished])
        return policy_ids

    def _after_reset(self, envs: Envs, infos: Any) -> None:
        """Begins the episodes of environments that were reset, after recording those that were over."""
        # Where rows may respawn, only the reset confirms that an episode is over.
        finished = self._finished(envs[self._episodes.over()[envs]])
        self._open[envs], self._followed[envs] = False, True
        self._episodes.begin(envs)
        all_of([partial(self._begin_tagged, envs, infos), *finished])

    def _after_step(self, rewards: Any, ends: Sequence[Any], infos: Any) -> None:
        """Adds the rewards of a step, and records the episodes that are over."""
        self._add(self._rewards_by_row(rewards))
        self._lengths += ~self._episodes.ended
        change = self._episodes.after_step(*ends)
        if self._recording.score is not None:
            self._infos.update((row, copied(self._terminal_info(infos, row))) for row in change.rows.tolist())
        calls: list[Callable[[], object]] = []
        if len(change.reset):  # this step's rewards count for no episode
            calls.append(partial(self._begin_tagged, change.reset, infos))
        if len(change.over) and not self._episodes.by_hand:
            calls.append(partial(self._end, change, infos))
        all_of(calls)

    def _rewards_by_row(self, rewards: Any) -> Any:
        """Returns one reward per row."""
        raise NotImplementedError

    def _tags(self, infos: Any, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Returns the policies that these rows are tagged with, or raises."""
        raise NotImplementedError

    def _terminal_info(self, infos: Any, row: int) -> dict[str, Any]:
        """Returns the info of a row that has ended."""
        raise NotImplementedError

    def _end(self, change: StepChange, infos: Any) -> None:
        """Records episodes that are over, once their environments have begun the next ones."""
        finished = self._finished(change.over)
        begun = [partial(self._begin_tagged, change.restarted, infos)] if len(change.restarted) else []
        all_of([*begun, *finished])

    def _add(self, rewards: Any) -> None:
        """Adds one reward per row; tensors and JAX arrays are summed where they are."""
        if is_tensor(rewards):
            values = rewards.detach().double()
        else:
            values = rewards.astype(float) if is_jax(rewards) else np.asarray(rewards, np.float64)
        count = len(self._lengths)
        if tuple(values.shape) == (count, 1):
            values = values.reshape(count)
        if tuple(values.shape) != (count,):
            raise ValueError(
                f"rewards must have shape ({count},), got {tuple(values.shape)}; combine vectors into numbers "
                f"by a wrapper inside, for example by a weighted sum"
            )
        total, rest = (array_for(values, part) for part in self._returns)
        self._returns = added(total, rest, values)

    def _begin_tagged(self, envs: Envs, infos: Any) -> None:
        """Begins the episodes of some environments, with the policies that their infos name."""
        self._begin(envs, self._tags(infos, self._rows[envs].reshape(-1)))

    def _begin(self, envs: Envs, policies: NDArray[Any]) -> None:
        rows = self._rows[envs].reshape(-1)
        self._policies[rows] = policies
        self._returns = tuple(with_values(part, rows, 0.0) for part in self._returns)
        self._lengths[rows] = 0
        self._open[envs] = self._followed[envs]

    def _finished(self, envs: Envs) -> list[Callable[[], object]]:
        """Returns calls that record the episodes of some environments, except those already recorded.

        They are called after the next episodes have begun, so that an error of one sink affects no other episode.
        """
        finished = envs[self._open[envs]]
        self._open[finished] = False
        if not len(finished):
            return []
        groups, total = self._rows[finished], self._returns[0]
        returns: Any = on_host(rows_of(total, index_for(total, groups.reshape(-1))))
        calls: list[Callable[[], object]] = []
        for rows, earned in zip(groups, returns.reshape(groups.shape).tolist(), strict=True):
            values = (self._policies[rows].tolist(), earned, self._lengths[rows].tolist())
            policies, returned, lengths = (dict(zip(self._agents, each, strict=True)) for each in values)
            infos = {agent: self._infos.pop(row, {}) for agent, row in zip(self._agents, rows.tolist(), strict=True)}
            calls.append(partial(self._recording.finish, policies, returned, lengths, infos))
        return calls


def layers_of(env: Any) -> list[Any]:
    """Returns an environment and those inside its wrappers, outermost first."""
    layers = [env]
    while (inner := getattr(layers[-1], "__dict__", {}).get("env")) is not None:
        layers.append(inner)
    return layers
