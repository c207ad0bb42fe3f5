"""An episode from `reset` to its end, played by the policies that the infos name."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np

from pz_policymap.cli.errors import CommandError, told
from pz_policymap.learner.global_generators import OwnRandomness
from pz_policymap.learner.turns import turns_of
from pz_policymap.policies.seat_policies import SeatPolicies

_NOBODY = object()  # for the learner: all seats are played by the policies
_TAG = "policy_id"


class Player:
    """Plays episodes of one environment.

    Args:
        env: A PettingZoo environment, tagged by a policy wrapper.
        policies: What `policies_named` returns.
    """

    def __init__(self, env: Any, policies: Sequence[Any]) -> None:
        self._turns = turns_of(env)
        self._policies = policies
        self._opponents = SeatPolicies(policies, env.action_space)

    def play(self, seed: int, episode: int, *, env_seed: int | None, matchup: dict[Any, int] | None = None) -> None:
        """Plays an episode; what policies and environment draw from the global generators follows from the seed.

        Args:
            seed: Of the whole command.
            episode: The number of the episode.
            env_seed: What the environment is reset with.
            matchup: Who plays whom, agent to policy; None: as drawn.

        Raises:
            CommandError: If the environment or a policy raises an error; it says where.
        """
        words = np.random.SeedSequence([seed, episode]).generate_state(1)
        self._seed = seed, episode
        try:
            with OwnRandomness(int(words[0])).in_place():
                self._play(env_seed, None if matchup is None else {"policy_ids": matchup})
        except Exception as error:
            raise CommandError(f"episode {episode}: {told(error)} ({_where(error)})") from error

    def _play(self, env_seed: int | None, options: dict[str, Any] | None) -> None:
        turns, opponents = self._turns, self._opponents
        turns.reset(env_seed, options)
        turns.begin(_NOBODY)
        opponents.begin({}, self._seed)
        seated = set[Any]()
        while movers := turns.movers:
            views = {agent: turns.view(agent) for agent in movers}
            observations = {agent: observation for agent, (observation, _) in views.items()}
            infos = {agent: info for agent, (_, info) in views.items()}
            players = {agent: info[_TAG] for agent, info in infos.items()}
            for agent in players.keys() - seated:
                opponents.join(agent, players[agent])
                seated.add(agent)
            turns.move(opponents.act_together(observations, infos))


def env_seed_of(seed: int, episode: int) -> int:
    """Returns the seed of an episode's environment: any process can compute any episode's."""
    words = np.random.SeedSequence([seed, episode, 1]).generate_state(1)
    return int(words[0]) >> 1  # environments of others may take no more than 31 bits


def _where(error: BaseException) -> str:
    """Returns file and line where an error was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "nobody knows where"
