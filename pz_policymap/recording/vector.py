"""`RecordResultsVector`: records the results of the episodes of a vector environment."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import NDArray
from typing_extensions import override

from pz_policymap.mappings.groups import GroupOf
from pz_policymap.recording.batch import BatchRecorder, layers_of
from pz_policymap.recording.running_episode import Recording, Score
from pz_policymap.results.payoff import Payoff
from pz_policymap.wrappers.find import key_of_tags
from pz_policymap.wrappers.vector import PolicyMapVector
from pz_policymap.wrappers.vector_agents import agents_of, known_agents
from pz_policymap.wrappers.vector_episodes import MASK, VectorEpisodes
from pz_policymap.wrappers.vector_infos import check_rows, policies_in, terminal_info, unpacked

if TYPE_CHECKING:
    from gymnasium.vector import AutoresetMode  # which Gymnasium 1.0 does not have


class RecordResultsVector(BatchRecorder, VectorWrapper):
    """Records the result of every episode of a vector environment; see `record_results`.

    If an environment has several rows, its episode ends when every row has ended at least once: the rewards of all its
    rows count until then, and the length of a row is its number of steps until it first ended. Other attributes, such
    as `policy_ids`, are forwarded to the environment.

    Args:
        env: A vector environment, tagged by policy wrappers inside or outside its vectorizer.
        *sinks: As in `record_results`, like all that follow.
        team_of: As in `record_results`.
        score: As in `record_results`.
        info_key: As in `record_results`.
        agents: As in `record_results`.
        autoreset_mode: As in `record_results`.
    """

    def __init__(
        self,
        env: VectorEnv,
        *sinks: Any,
        team_of: GroupOf | None = None,
        score: Score | None = None,
        info_key: str | None = None,
        agents: int | Sequence[Hashable] | None = None,
        autoreset_mode: AutoresetMode | str | None = None,
    ) -> None:
        VectorWrapper.__init__(self, env)
        if not sinks:
            raise ValueError("sinks must hold at least one sink, such as a Payoff, got none")
        recording = Recording(sinks, team_of, score, key_of_tags(env, info_key))
        tagger = next((layer for layer in layers_of(env) if isinstance(layer, PolicyMapVector)), None)
        if tagger is not None:
            if agents is None and len(tagger.agents) > 1:
                agents = tagger.agents
            autoreset_mode = tagger.autoreset_mode  # type: ignore[assignment]  # our own enum
        told = agents is not None or known_agents(env) is not None
        names = agents_of(env, agents)
        compared = any(isinstance(getattr(sink, "__self__", sink), Payoff) for sink in sinks)
        if len(names) == 1 and not told and compared:
            raise ValueError(
                "agents must be given for a Payoff, which compares the seats of one environment: the number of rows "
                "per environment, or the names of its agents, got None"
            )
        length = None if tagger is None else tagger.episodes.length
        episodes = VectorEpisodes.of(env, env.num_envs // len(names), len(names), autoreset_mode, length=length)
        self._record_into(recording, names, episodes)

    @override
    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Any]:
        """Resets environments; interrupted episodes are not recorded."""
        mask = (options or {}).get(MASK)  # read before the environment removes it
        envs = np.arange(len(self._rows)) if mask is None else self._episodes.masked(mask)
        observations, infos = self.env.reset(seed=seed, options=options)
        read = self._checked(infos, observations)
        if self._tagger is not None:
            self._episodes.autoreset = self._tagger.autoreset_mode
        self._episodes.settle_mode(self.env, read)
        self._after_reset(envs, read)
        return observations, infos

    @override
    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Steps the environments, and records the episodes that are over."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        self._after_step(rewards, (terminations, truncations), self._checked(infos, terminations))
        return observations, rewards, terminations, truncations, infos

    def _checked(self, infos: Any, values: Any) -> Any:
        """Returns the infos as a dict of arrays or one dict per row, or raises if rows are missing."""
        infos = unpacked(infos, getattr(self.env.unwrapped, "idx_starts", None))
        check_rows(self.num_envs, values, infos)
        return infos

    @override
    def _rewards_by_row(self, rewards: Any) -> Any:
        return rewards

    @override
    def _tags(self, infos: Any, rows: NDArray[np.intp]) -> NDArray[Any]:
        return policies_in(infos, self._recording.info_key, rows)

    @override
    def _terminal_info(self, infos: Any, row: int) -> dict[str, Any]:
        return terminal_info(infos, row)
