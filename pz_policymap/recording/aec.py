"""`RecordResultsAEC`: records the results of episodes of a PettingZoo AEC environment."""

from __future__ import annotations

from typing import Any

from pettingzoo.utils.env import ActionType, AECEnv, AgentID, ObsType
from pettingzoo.utils.wrappers import (
    AssertOutOfBoundsWrapper,
    BaseWrapper,
    CaptureStdoutWrapper,
    ClipOutOfBoundsWrapper,
    OrderEnforcingWrapper,
    TerminateIllegalWrapper,
)
from typing_extensions import override

from pz_policymap.mappings.groups import GroupOf
from pz_policymap.recording.finished import reported
from pz_policymap.recording.running_episode import Recording, RunningEpisode, Score
from pz_policymap.results.episode import Episode
from pz_policymap.wrappers.aec import PolicyMapAEC
from pz_policymap.wrappers.find import key_of_tags


class RecordResultsAEC(BaseWrapper[AgentID, ObsType, ActionType]):
    """Records the result of every episode of an AEC environment; see `record_results`.

    Attributes:
        finished: The `Episode` that has finished, until the next begins; otherwise None.
        sinks: The functions that receive each episode.
    """

    finished: Episode | None = None
    _reporter: Any = None  # the agent whose info holds the finished episode

    def __init__(
        self,
        env: AECEnv[AgentID, ObsType, ActionType],
        *sinks: Any,
        team_of: GroupOf | None = None,
        score: Score | None = None,
        info_key: str | None = None,
    ) -> None:
        super().__init__(env)
        self._recording = Recording(sinks, team_of, score, key_of_tags(env, info_key))
        self._state = holder_of_state(env)
        self._was_reset = False
        self._episode: RunningEpisode | None = None  # None before the first episode and after the end of one

    @property
    def sinks(self) -> tuple[Any, ...]:
        """The functions that receive each episode."""
        return self._recording.sinks

    @override
    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Resets the environment; an unfinished episode is not recorded."""
        self.env.reset(seed=seed, options=options)  # if it raises, the old episode may continue
        self._episode = self._begun()
        self._was_reset = True

    @override
    def step(self, action: ActionType) -> None:
        """Steps the environment, and records the episode if all its agents have ended."""
        env, state, episode = self.env, self._state, self._episode
        if self._was_reset:
            agent = state.agent_selection
            dead = not state.agents or state.terminations[agent] or state.truncations.get(agent, False)
            if episode is None and not dead:
                self._episode = episode = self._begun()  # a wrapper inside has reset the environment by itself
        if episode is None:
            env.step(action)  # which raises before a reset
            return
        if agent not in episode.policies or (dead and self._recording.score is not None):
            episode.read(env.infos)
        env.step(action)
        if not dead:
            if agent not in episode.policies:
                episode.read(env.infos)
            episode.earn(state.rewards)
            episode.acted((agent,))
            if self._over():
                self._finish(episode)

    @property
    def infos(self) -> dict[AgentID, dict[str, Any]]:  # type: ignore[override]  # read-only, as in `PolicyMapAEC`
        """The infos of all agents; one of them holds the episode that has finished."""
        infos: dict[AgentID, dict[str, Any]] = self.env.infos
        if self.finished is None or self._reporter not in infos:
            return infos
        return reported(infos, self._reporter, self.finished)

    @override
    def last(self, observe: bool = True) -> tuple[ObsType | None, float, bool, bool, dict[str, Any]]:
        """Returns observation, cumulative reward, termination, truncation and tagged info of the agent to move."""
        if self.finished is None:
            return self.env.last(observe)
        *shown, info = self.env.last(observe)
        agent = self._state.agent_selection
        if agent == self._reporter:
            info = reported({agent: info}, agent, self.finished)[agent]
        return *shown, info  # type: ignore[return-value]

    @override
    def observe(self, agent: AgentID) -> ObsType | None:
        """Returns the observation of an agent; records an episode that ended without a step."""
        # TerminateIllegalWrapper outside ends an episode without `step`, then observes before an agent is removed.
        episode = self._episode
        if episode is not None and self._state.agents and self._over():
            episode.earn(self._state.rewards)
            self._finish(episode)
        return self.env.observe(agent)

    def _begun(self) -> RunningEpisode:
        self.finished = None
        return RunningEpisode(self._recording, self.env, self.env.infos)

    def _over(self) -> bool:
        state = self._state
        terminations, truncations = state.terminations, state.truncations
        for agent in state.agents:  # noqa: SIM110  # `all` takes twice as long to find the first live agent
            if not (terminations[agent] or truncations.get(agent, False)):
                return False
        return True

    def _finish(self, episode: RunningEpisode) -> None:
        self._episode = None
        episode.read(self.env.infos)
        self.finished, self._reporter = episode.finish(), self._state.agent_selection


# Wrappers that forward `agents`, `agent_selection`, `rewards`, `terminations` and `truncations` unchanged.
_FORWARDING = {
    AssertOutOfBoundsWrapper,
    BaseWrapper,
    CaptureStdoutWrapper,
    ClipOutOfBoundsWrapper,
    OrderEnforcingWrapper,
    PolicyMapAEC,
    RecordResultsAEC,
    TerminateIllegalWrapper,
}


def holder_of_state(env: Any) -> Any:
    """Returns the innermost AEC environment that has the same agents, rewards and ends as `env`.

    Attributes are slow to read through wrappers, so wrappers that only forward them are skipped.
    """
    while type(env) in _FORWARDING:
        env = env.env
    return env
