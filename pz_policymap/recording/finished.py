"""`finished_episodes`: takes finished episodes out of infos, as they come from workers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from pz_policymap.results.episode import Episode

FINISHED = "finished_episodes"  # key of the finished episodes in an info, a tuple


def finished_episodes(infos: Any) -> list[Episode]:
    """Returns the episodes that the infos of one step report as finished, each of them once.

    `record_results` and `LearnerEnv` put them into the last info of an episode, under "finished_episodes". Infos leave
    the processes of a vector environment, unlike ledgers, which are copied into each process and remain there.

    Args:
        infos: The infos of a step: of one environment, a dict from agent to info (PettingZoo), a dict of arrays
            (Gymnasium's vector environments, with their `final_info`) or a list of dicts (Stable-Baselines3).

    Example:
        >>> import gymnasium
        >>> import pz_policymap as pm
        >>> from pettingzoo.classic import rps_v2
        >>> def make():
        ...     env = pm.wrap(rps_v2.env(max_cycles=2), pm.Focal(pm.Fixed(0), pm.Fixed(1)))
        ...     return pm.LearnerEnv(pm.record_results(env), {1: "random"})
        >>> envs, payoff = gymnasium.vector.SyncVectorEnv([make, make]), pm.Payoff(num_policies=2)
        >>> observations, infos = envs.reset(seed=0)
        >>> for _ in range(2):
        ...     *_, infos = envs.step([0, 0])
        ...     for episode in pm.finished_episodes(infos):
        ...         payoff.record(episode)
        >>> int(payoff.games[0, 1])
        2
    """
    found: list[Episode] = []
    nested: Iterable[Any] = infos
    if isinstance(infos, Mapping):
        own = infos.get(FINISHED, ())
        for episodes in own.tolist() if isinstance(own, np.ndarray) else (own,):
            found += episodes or ()  # None for the other environments of a vector
        nested = infos.values()
    for info in nested:
        if isinstance(info, Mapping):
            found += finished_episodes(info)
    return found


class Unreported:
    """The finished episodes of a recorder that no info has reported yet.

    Args:
        recorder: A recorder of one environment, or None.
    """

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self._episodes: tuple[Episode, ...] = ()

    def collect(self) -> None:
        """Keeps the episode that the recorder has just finished, if there is one."""
        if self._recorder is not None and self._recorder.finished is not None:
            self._episodes += (self._recorder.finished,)

    def report(self, info: dict[Any, Any]) -> None:
        """Moves the episodes into an info."""
        if self._episodes:
            info[FINISHED], self._episodes = self._episodes, ()


def reported(infos: Mapping[Any, Any], agent: Hashable, episode: Episode) -> dict[Any, Any]:
    """Returns the infos of a PettingZoo environment with a finished episode in the info of one agent."""
    return {**infos, agent: {**infos.get(agent, {}), FINISHED: (episode,)}}
