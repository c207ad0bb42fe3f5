"""`LearnerEpisodes`: steps an environment from one turn of the learner to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pz_policymap.learner.seats import agent_of
from pz_policymap.learner.turns import turns_of
from pz_policymap.policies.seat_policies import SeatPolicies
from pz_policymap.wrappers.pettingzoo_tags import Info


class LearnerEpisodes:
    """Steps an environment from one turn of the learner to the next.

    Args:
        env: A PettingZoo environment.
        wrapper: The policy wrapper around or inside it.
        opponents: The policies of the other seats.
        learner: The policy id of the learner.

    Attributes:
        agent: The agent that the learner controls in this episode; None before the first reset.
    """

    def __init__(self, env: Any, wrapper: Any, opponents: SeatPolicies, learner: int) -> None:
        self.agent: Any = None
        self._turns = turns_of(env)
        self._wrapper = wrapper
        self._opponents = opponents
        self._learner = learner
        self._assignment: dict[Any, int] = {}

    @property
    def seen(self) -> tuple[Any, Info]:
        """The learner's latest observation and info."""
        self._check_assignment()
        return self._turns.seen

    @property
    def ended(self) -> tuple[bool, bool]:
        """Whether the learner, which has ended, has terminated and whether it is truncated."""
        return self._turns.ended or (True, False)  # an agent that is removed without flags has terminated

    def begin(self, seed: int | None, options: Info | None, opponent_seed: tuple[int, ...]) -> Any:
        """Resets the environment, and returns the agent that the learner controls.

        Args:
            seed: Passed to the environment.
            options: Passed to the environment.
            opponent_seed: Seeds the generators of opponents that take `rng`.

        Raises:
            KeyError: If an opponent is missing.
            TypeError: If an opponent is not a policy.
            ValueError: If the learner does not control exactly one agent.
        """
        self._turns.reset(seed, None if options is None else dict(options))
        self._assignment = dict(self._wrapper.policy_ids)
        self.agent = agent_of(self._learner, self._assignment)
        opponents = {agent: policy for agent, policy in self._assignment.items() if policy != self._learner}
        self._opponents.begin(opponents, opponent_seed)
        self._turns.begin(self.agent)
        return self.agent

    def act(self, action: Any) -> None:
        """Moves the learner, whose turn it is, and the agents that move at the same time."""
        self._move({self.agent: action})

    def until_turn(self) -> bool:
        """Moves the others until it is the learner's turn; returns False if it has no further turn."""
        turns = self._turns
        while turns.ended is None and (movers := turns.movers):
            if self.agent in movers:
                return True
            self._move({})
        return False

    def play_out(self) -> None:
        """Moves the others to the end of the episode."""
        # If the learner returns to life, as in some environments, no policy can act for it, so the episode is left.
        while (movers := self._turns.movers) and self.agent not in movers:
            self._move({})

    def take_reward(self) -> float:
        """Returns the sum of the learner's rewards since the last call, or since the episode began."""
        return self._turns.take_reward()

    def _move(self, actions: Mapping[Any, Any]) -> None:
        """Moves all agents whose turn it is: the learner as given, the others by their policies."""
        turns = self._turns
        movers = turns.movers
        observations, infos = dict[Any, Any](), dict[Any, Info]()
        for agent in movers:
            if agent not in actions:
                observations[agent], infos[agent] = turns.view(agent)
        self._check_assignment()
        chosen = {**self._opponents.act_together(observations, infos), **actions}
        turns.move({agent: chosen[agent] for agent in movers})

    def _check_assignment(self) -> None:
        """Gives agents that joined mid-episode their policies; raises if the policy of an agent has changed."""
        policy_ids = self._wrapper.policy_ids
        if policy_ids == self._assignment:
            return
        for agent, before in self._assignment.items():
            if policy_ids.get(agent, before) != before:
                raise ValueError(
                    f"agent {agent!r} must keep policy {before} within an episode, got policy {policy_ids[agent]}: "
                    f"LearnerEnv goes inside a wrapper that resets the environment by itself"
                )
        late = [agent for agent in policy_ids if agent not in self._assignment]
        self._assignment |= policy_ids
        agent_of(self._learner, self._assignment)
        for agent in late:
            self._opponents.join(agent, policy_ids[agent])
