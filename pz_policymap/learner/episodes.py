"""`LearnerEpisodes`: episodes as a learner goes through them, while opponents play the other seats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pz_policymap.learner.seats import the_one
from pz_policymap.learner.turns import turns_of
from pz_policymap.policies.seat_policies import SeatPolicies
from pz_policymap.wrappers.pettingzoo_tags import Info


class LearnerEpisodes:
    """Steps an environment from one turn of the learner to the next.

    Args:
        env: A PettingZoo environment.
        wrapper: The policy wrapper around or inside it.
        opponents: Who plays the other seats.
        learner: The policy that is asked from outside.

    Attributes:
        agent: Whom the learner plays in this episode; None before the first.
    """

    def __init__(self, env: Any, wrapper: Any, opponents: SeatPolicies, learner: int) -> None:
        self.agent: Any = None
        self._turns = turns_of(env)
        self._wrapper = wrapper
        self._opponents = opponents
        self._learner = learner
        self._players: dict[Any, int] = {}  # of this episode, agent to policy

    @property
    def seen(self) -> tuple[Any, Info]:
        """What the learner saw last, and its info."""
        if self._turns.seen is None:
            raise RuntimeError(f"env must show agent {self.agent!r} something at its turn, and has shown nothing")
        self._check_players()
        return self._turns.seen

    @property
    def ended(self) -> tuple[bool, bool]:
        """Whether the learner, who has no turn any more, terminated, and whether it was truncated."""
        return self._turns.ended or (True, False)  # an agent that is gone without a word has terminated

    def begin(self, seed: int | None, options: Info | None) -> Any:
        """Resets the environment, and returns the agent that the learner plays.

        Raises:
            KeyError: If an opponent is missing.
            TypeError: If one is no policy.
            ValueError: If the learner does not play exactly one seat.
        """
        self._turns.reset(seed, None if options is None else dict(options))
        self._players = dict(self._wrapper.policy_ids)
        self.agent = the_one(self._players, self._learner)
        self._opponents.begin({a: policy for a, policy in self._players.items() if policy != self._learner}, seed=0)
        self._turns.begin(self.agent)
        return self.agent

    def act(self, action: Any) -> None:
        """Acts for the learner, whose turn it is, and for those who move at the same time."""
        self._move({self.agent: action})

    def until_turn(self) -> bool:
        """Lets the others move until it is the learner's turn; returns False if there is none any more."""
        turns = self._turns
        while turns.ended is None and (movers := turns.movers):
            if self.agent in movers:
                return True
            self._move({})
        return False

    def play_out(self) -> None:
        """Lets the others move to the end."""
        # A learner that comes back to life, as in some environments, has nobody to play it.
        while (movers := self._turns.movers) and self.agent not in movers:
            self._move({})

    def take_reward(self) -> float:
        """Returns what the learner has earned since this was last asked, or since the episode began."""
        return self._turns.take_reward()

    def _move(self, actions: Mapping[Any, Any]) -> None:
        """Moves everybody whose turn it is: the learner as given, the others as they will."""
        turns = self._turns
        movers = turns.movers
        observations, infos = dict[Any, Any](), dict[Any, Info]()
        for agent in movers:
            if agent not in actions:
                observations[agent], infos[agent] = turns.view(agent)
        self._check_players()
        chosen = {**self._opponents.act_together(observations, infos), **actions}
        turns.move({agent: chosen[agent] for agent in movers})

    def _check_players(self) -> None:
        """Seats agents that nobody foresaw, and raises where another policy plays an agent than before."""
        players = self._wrapper.policy_ids
        if players == self._players:
            return
        for agent, before in self._players.items():
            if players.get(agent, before) != before:
                raise ValueError(
                    f"agent {agent!r} is played by policy {players[agent]}, and by {before} before in the same "
                    f"episode: LearnerEnv goes inside a wrapper that resets the environment by itself"
                )
        late = [agent for agent in players if agent not in self._players]
        self._players |= players
        the_one(self._players, self._learner)
        for agent in late:
            self._opponents.join(agent, players[agent])
