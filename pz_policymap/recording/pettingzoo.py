"""`RecordResultsAEC` and `RecordResultsParallel`: what `record_results` makes of PettingZoo environments."""

from __future__ import annotations

from typing import Any

from pettingzoo.utils.env import ActionType, AECEnv, AgentID, ObsType, ParallelEnv
from pettingzoo.utils.wrappers import BaseParallelWrapper, BaseWrapper
from typing_extensions import override

from pz_policymap.mappings.groups import GroupOf
from pz_policymap.recording.running_episode import Recording, Score, Tally


class RecordResultsAEC(BaseWrapper[AgentID, ObsType, ActionType]):
    """Records what every episode of an AEC environment ended with; see `record_results`."""

    def __init__(
        self,
        env: AECEnv[AgentID, ObsType, ActionType],
        *sinks: Any,
        team_of: GroupOf | None = None,
        score: Score | None = None,
        info_key: str = "policy_id",
    ) -> None:
        super().__init__(env)
        self._recording = Recording(sinks, team_of, score, info_key)
        self._tally: Tally | None = None  # None before the first episode, and once an episode is recorded

    @override
    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Resets the environment; an episode that has not ended is not recorded."""
        self.env.reset(seed=seed, options=options)  # if it raises, the old episode may go on
        self._tally = self._begun()

    @override
    def step(self, action: ActionType) -> None:
        """Steps the environment, and records the episode if all its agents have ended now."""
        env, agent = self.env, self.agent_selection
        dead = not env.agents or env.terminations[agent] or env.truncations[agent]
        if self._tally is None and not dead:
            self._tally = self._begun()  # a wrapper inside has reset the environment by itself
        tally = self._tally
        if tally is None:
            env.step(action)
            return
        if not tally.knows(agent) or (dead and self._recording.score is not None):
            tally.read(env.infos)
        env.step(action)
        if not dead:  # what stands in `rewards` after a dead agent's step has been counted
            if not tally.knows(agent):
                tally.read(env.infos)
            tally.earn(env.rewards)
            tally.acted([agent])
            self._finish_if_over(tally)

    @override
    def observe(self, agent: AgentID) -> ObsType | None:
        """Returns what the agent observes; records an episode that ended without a step."""
        # TerminateIllegalWrapper, outside, ends an episode behind our back, and then looks before any agent is removed.
        tally = self._tally
        if tally is not None and self.env.agents and self._over():
            tally.earn(self.env.rewards)
            self._finish_if_over(tally)
        return self.env.observe(agent)

    def _begun(self) -> Tally:
        return Tally(self._recording, self.env.agents, self.env.infos)

    def _over(self) -> bool:
        env = self.env
        terminations, truncations = env.terminations, env.truncations  # slow to read through many wrappers
        return all(terminations[agent] or truncations[agent] for agent in env.agents)

    def _finish_if_over(self, tally: Tally) -> None:
        if self._over():
            self._tally = None
            tally.read(self.env.infos)
            tally.finish()


class RecordResultsParallel(BaseParallelWrapper[AgentID, ObsType, ActionType]):
    """Records what every episode of a Parallel environment ended with; see `record_results`."""

    def __init__(
        self,
        env: ParallelEnv[AgentID, ObsType, ActionType],
        *sinks: Any,
        team_of: GroupOf | None = None,
        score: Score | None = None,
        info_key: str = "policy_id",
    ) -> None:
        super().__init__(env)
        self._recording = Recording(sinks, team_of, score, info_key)
        self._tally: Tally | None = None  # None before the first episode, and once an episode is recorded
        self._ended: set[AgentID] = set()

    @override
    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[AgentID, ObsType], dict[AgentID, dict[str, Any]]]:
        """Resets the environment; an episode that has not ended is not recorded."""
        observations, infos = self.env.reset(seed=seed, options=options)  # if it raises, the old episode may go on
        self._tally = Tally(self._recording, self.env.agents, infos)
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
        """Steps the environment, and records the episode if all its agents have ended now."""
        tally = self._tally
        acting = list(self.env.agents)
        outcome = self.env.step(actions)
        if tally is None or len(outcome) != 5:  # turn_based_aec_to_parallel returns four once no agent remains
            return outcome
        _, rewards, terminations, truncations, infos = outcome
        tally.earn(rewards)
        tally.read(infos)
        tally.acted(acting)
        for agent, terminated in terminations.items():
            if terminated or truncations[agent]:
                self._ended.add(agent)
            else:
                self._ended.discard(agent)  # it came back under its name
        if self._ended.issuperset(self.env.agents):
            self._tally = None
            tally.read(infos, again=True)
            tally.finish()
        return outcome
