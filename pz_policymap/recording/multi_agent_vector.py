"""`RecordResultsMultiAgentVector`: records the results of the episodes of a batched multi-agent simulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from pz_policymap.arguments import row_numbers
from pz_policymap.batching.nested_arrays import array_for, as_leaf, library_of, on_host
from pz_policymap.mappings.groups import GroupOf
from pz_policymap.recording.batch import BatchRecorder, layers_of
from pz_policymap.recording.running_episode import Recording, Score
from pz_policymap.wrappers.find import key_of_tags
from pz_policymap.wrappers.multi_agent_vector import PolicyMapMultiAgentVector
from pz_policymap.wrappers.vector_episodes import MASK, VectorEpisodes, mask_on_host
from pz_policymap.wrappers.vector_infos import FINAL, terminal_info


class RecordResultsMultiAgentVector(BatchRecorder):
    """Records the result of every episode of a batched multi-agent simulator; see `record_results`.

    The rewards of all agents count until the episode of their environment ends, and the length of an agent is its
    number of steps until it first ended. An agent without rewards in a step earns 0, and so does an agent that has
    ended and whose reward is NaN. Other attributes are forwarded to the environment.

    Args:
        env: A `PolicyMapMultiAgentVector`, or a wrapper around one that keeps it in `env`.
        *sinks: As in `record_results`, like all that follow.
        team_of: As in `record_results`.
        score: As in `record_results`.
        info_key: As in `record_results`.
    """

    def __init__(
        self,
        env: Any,
        *sinks: Any,
        team_of: GroupOf | None = None,
        score: Score | None = None,
        info_key: str | None = None,
    ) -> None:
        if not sinks:
            raise ValueError("sinks must hold at least one sink, such as a Payoff, got none")
        tagger = next((layer for layer in layers_of(env) if isinstance(layer, PolicyMapMultiAgentVector)), None)
        if tagger is None:
            raise ValueError(f"env must be wrapped with a policy wrapper first, got {env!r}")
        self.env = env
        of_tagger = tagger.episodes
        episodes = VectorEpisodes(
            of_tagger.num_envs,
            len(tagger.agents),
            of_tagger.autoreset,
            of_tagger.by_hand,
            of_tagger.length,
            tagger.flags,
        )
        self._flags = tagger.flags
        self._respawns = of_tagger.by_hand
        self._record_into(Recording(sinks, team_of, score, key_of_tags(env, info_key)), tagger.agents, episodes)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Resets environments; interrupted episodes are not recorded."""
        count, mask = len(self._rows), (options or {}).get(MASK)
        envs = np.arange(count) if mask is None else np.flatnonzero(mask_on_host(mask, count))
        observations, infos = self.env.reset(seed=seed, options=options)
        self._after_reset(envs, infos)
        return observations, infos

    def reset_at(self, index: Any, *, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Resets one environment; see `PolicyMapMultiAgentVector.reset_at`."""
        observations, infos = self.env.reset_at(index, options=options)
        self._after_reset(row_numbers("index", np.atleast_1d(on_host(index)), len(self._rows)), infos)
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, ...]:
        """Steps the environments, and records the episodes that are over."""
        observations, rewards, *ends, infos = self.env.step(actions)
        # Agents may respawn after they ended; a flag for a whole environment always ends its episode.
        self._episodes.by_hand = self._respawns and not self._flags.is_whole(ends)
        self._after_step(rewards, ends, infos)
        return (observations, rewards, *ends, infos)

    @override
    def _rewards_by_row(self, rewards: Any) -> Any:
        if not isinstance(rewards, Mapping):
            raise TypeError(
                f"rewards must be a dict from agent to array, got {rewards!r}; if all agents share one reward, give it "
                f"to each of them by a wrapper inside"
            )
        given = {agent: self._checked(agent, rewards[agent]) for agent in self._agents if agent in rewards}
        library = library_of(*given.values())
        like = next((each for each in given.values() if library_of(each) is library), np.zeros(len(self._rows)))
        nothing = library.zeros_like(like)
        columns = [array_for(like, given.get(agent, nothing)) for agent in self._agents]
        values, ended = library.stack(columns, 1).reshape(-1), self._episodes.ended
        if not ended.any():
            return values
        dead = array_for(values, ended.copy())  # JAX may read the memory of an array later
        return library.where(dead & library.isnan(values), library.zeros_like(values), values)

    def _checked(self, agent: Any, reward: Any) -> Any:
        """Returns the rewards of one agent as an array of shape `(num_envs,)`, or raises a ValueError."""
        array, count = as_leaf(reward), len(self._rows)
        if tuple(array.shape) not in ((count,), (count, 1)):
            raise ValueError(f"rewards[{agent!r}] must have shape ({count},), got {tuple(array.shape)}")
        return array.reshape(count)

    @override
    def _tags(self, infos: Any, rows: NDArray[np.intp]) -> NDArray[Any]:
        key = self._recording.info_key
        for agent in self._agents:
            if key not in infos.get(agent, {}):
                raise self._recording.untagged(agent)
        return np.stack([on_host(infos[agent][key]) for agent in self._agents], 1).reshape(-1)[rows]

    @override
    def _terminal_info(self, infos: Any, row: int) -> dict[str, Any]:
        env, seat = divmod(row, len(self._agents))
        info, key = infos[self._agents[seat]], self._recording.info_key
        if info.get(FINAL, {}).keys() <= {
            key,
            f"_{key}",
        }:  # the simulator has no infos of its own for finished episodes
            info = {name: value for name, value in info.items() if name not in (FINAL, f"_{FINAL}")}
        return terminal_info(info, env) | {key: int(self._policies[row])}
