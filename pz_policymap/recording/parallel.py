"""`RecordResultsParallel`: records the results of episodes of a PettingZoo Parallel environment."""

from __future__ import annotations

from typing import Any

from pettingzoo.utils.env import ActionType, AgentID, ObsType, ParallelEnv
from pettingzoo.utils.wrappers import BaseParallelWrapper
from typing_extensions import override

from pz_policymap.mappings.groups import GroupOf
from pz_policymap.recording.finished import reported
from pz_policymap.recording.running_episode import Recording, RunningEpisode, Score, follow_ends
from pz_policymap.results.episode import Episode
from pz_policymap.wrappers.find import key_of_tags


class RecordResultsParallel(BaseParallelWrapper[AgentID, ObsType, ActionType]):
    """Records the result of every episode of a Parallel environment; see `record_results`.

    Attributes:
        finished: The `Episode` that has finished, until the next reset; otherwise None.
        sinks: The functions that receive each episode.
    """

    finished: Episode | None = None

    def __init__(
        self,
        env: ParallelEnv[AgentID, ObsType, ActionType],
        *sinks: Any,
        team_of: GroupOf | None = None,
        score: Score | None = None,
        info_key: str | None = None,
    ) -> None:
        super().__init__(env)
        self._recording = Recording(sinks, team_of, score, key_of_tags(env, info_key))
        self._episode: RunningEpisode | None = None  # None before the first episode and after the end of one
        self._ended: set[AgentID] = set()

    @property
    def sinks(self) -> tuple[Any, ...]:
        """The functions that receive each episode."""
        return self._recording.sinks

    @override
    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[AgentID, ObsType], dict[AgentID, dict[str, Any]]]:
        """Resets the environment; an unfinished episode is not recorded."""
        observations, infos = self.env.reset(seed=seed, options=options)  # if it raises, the old episode may continue
        self._episode, self.finished = RunningEpisode(self._recording, self.env, infos), None
        self._ended = set()
        return observations, infos

    @override
    def step(
        self, actions: dict[AgentID, ActionType]
    ) -> tuple[
        dict[AgentID, ObsType],
        dict[AgentID, float],
        dict[AgentID, bool],
        dict[AgentID, bool],
        dict[AgentID, dict[str, Any]],
    ]:
        """Steps the environment, and records the episode if all its agents have ended."""
        episode, ended = self._episode, self._ended
        acting = [agent for agent in self.env.agents if agent not in ended]  # `agents` may lag behind terminations
        outcome = self.env.step(actions)
        if episode is None or len(outcome) != 5:  # turn_based_aec_to_parallel returns four once no agent remains
            return outcome
        observations, rewards, terminations, truncations, infos = outcome
        episode.earn(rewards, infos)
        episode.read(infos)
        episode.acted(acting)
        follow_ends(ended, terminations, truncations)
        if ended.issuperset(self.env.agents):
            self._episode = None
            episode.check_tags(infos)
            self.finished = episode.finish()
            first = next((agent for agent in infos if agent in episode.policies), self.finished.agents[0])
            infos = reported(infos, first, self.finished)
            return observations, rewards, terminations, truncations, infos
        return outcome
