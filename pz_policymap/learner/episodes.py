"""`LearnerEpisodes`: plays the episodes of a PettingZoo environment from one turn of the learner to the next.

The policies of the other agents are not called here. `play` is a generator that yields requests for their actions, so
that the caller can pass the requests of several environments to a policy in one batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeVar

from pettingzoo.utils.env import AECEnv
from typing_extensions import override

from pz_policymap.batching.nested_arrays import copied
from pz_policymap.learner.seats import seat_to_learn_in, seats_of
from pz_policymap.policies.predict import Ask
from pz_policymap.policies.seat_policies import SeatPolicies
from pz_policymap.recording.aec import holder_of_state
from pz_policymap.recording.rewards import reward_number
from pz_policymap.recording.running_episode import follow_ends
from pz_policymap.wrappers.pettingzoo_tags import Info

Result = TypeVar("Result")
Asking = Generator[Sequence[Ask], list[Any], Result]
"""Yields requests, and receives one action per request."""


class LearnerEpisodes(ABC):
    """Plays the episodes of an environment from one turn of the learner to the next.

    Args:
        env: A PettingZoo environment.
        wrapper: The policy wrapper around or inside it.
        opponents: The policies of the other seats.
        learner: The policy id of the learner.

    Attributes:
        agent: The agent that the learner controls in this episode; None before the first reset.
        seen: The learner's latest observation and info; None and an empty dict before its first turn.
        ended: Whether the learner has terminated and whether it is truncated; None before its end.
    """

    def __init__(self, env: Any, wrapper: Any, opponents: SeatPolicies, learner: int) -> None:
        self.agent: Any = None
        self.seen: tuple[Any, Info] = None, {}
        self.ended: tuple[bool, bool] | None = None
        self._env = env
        self._wrapper = wrapper
        self._opponents = opponents
        self._learner = learner
        self._tags: Mapping[Any, Info] = {}
        self._assignment: dict[Any, int] = {}
        self._reward = 0.0

    def begin(self, seed: int | None, options: Info | None, opponent_seed: tuple[int, ...]) -> None:
        """Resets the environment; `agent` is then the agent that the learner controls.

        Args:
            seed: Passed to the environment.
            options: Passed to the environment.
            opponent_seed: Seeds the generators of opponents that take `rng`.

        Raises:
            KeyError: If an opponent is missing.
            TypeError: If an opponent is not a policy.
            ValueError: If the learner controls no agent, or several although no policy is given for the others.
        """
        first = self._env.reset(seed=seed, options=None if options is None else dict(options))
        self._tags, self._assignment = self._wrapper.tags, self._wrapper.policy_ids
        self._several = self._opponents.holds(self._learner)
        held = seats_of(self._learner, self._assignment, self._several)
        self.agent = seat_to_learn_in(held, self._wrapper.assigner)
        opponents = {agent: policy for agent, policy in self._assignment.items() if agent != self.agent}
        self._opponents.begin(opponents, opponent_seed)
        self.seen, self.ended, self._reward = (None, {}), None, 0.0
        self._look(first)

    @abstractmethod
    def _look(self, views: Any) -> None:
        """Receives the observations and infos of a Parallel environment; None for an AEC environment."""

    @abstractmethod
    def play(self, actions: Sequence[Any], play_out: bool) -> Asking[bool]:
        """Plays until the learner's next turn or the end of the episode, and returns whether the learner has a turn.

        Args:
            actions: The learner's action if it is its turn, otherwise empty.
            play_out: Whether the others play on after the learner's end.
        """

    def take_reward(self) -> float:
        """Returns the sum of the learner's rewards since the last call, or since the episode began."""
        reward, self._reward = self._reward, 0.0
        return reward

    def _follow(self) -> None:
        """Gives agents that joined mid-episode their policies; raises if the policy of an agent has changed."""
        tags = self._wrapper.tags
        if tags is self._tags and len(tags) == len(self._assignment):
            return
        policy_ids = self._wrapper.policy_ids
        for agent, before in self._assignment.items():
            if policy_ids.get(agent, before) != before:
                raise ValueError(
                    f"agent {agent!r} must keep policy {before} within an episode, got policy {policy_ids[agent]}: "
                    f"put LearnerEnv inside the wrapper that resets the environment by itself"
                )
        late = [agent for agent in policy_ids if agent not in self._assignment]
        self._tags, self._assignment = tags, self._assignment | policy_ids
        seats_of(self._learner, self._assignment, self._several)
        for agent in late:
            self._opponents.join(agent, policy_ids[agent])


class AECEpisodes(LearnerEpisodes):
    """`LearnerEpisodes` of an AEC environment; dead agents are stepped over."""

    def __init__(self, env: Any, wrapper: Any, opponents: SeatPolicies, learner: int) -> None:
        super().__init__(env, wrapper, opponents, learner)
        self._state = holder_of_state(env)

    @override
    def _look(self, views: None) -> None:
        pass  # `last` shows one agent at a time

    @override
    def play(self, actions: Sequence[Any], play_out: bool) -> Asking[bool]:
        env, state, learner = self._env, self._state, self.agent
        while True:
            for action in actions:
                env.step(action)
                self._reward += reward_number(learner, state.rewards.get(learner))
            if not state.agents:
                break
            agent, actions = state.agent_selection, ()
            observation, _, terminated, truncated, info = env.last()
            self._follow()
            if terminated or truncated:
                if agent == learner:
                    # The environment may write into the arrays of a dead agent while the others move on.
                    self.seen, self.ended = copied((observation, info)), (bool(terminated), bool(truncated))
                    if not play_out:
                        return False
                env.step(None)
            elif agent != learner:
                actions = yield [(self._opponents.policy_of(agent), agent, observation, info)]
            elif self.ended is None:
                self.seen = observation, info
                return True
            else:  # it has respawned, as in some environments, and no policy can act for it
                return False
        if self.ended is None:  # it was removed with its last step
            over = bool(state.terminations.get(learner)), bool(state.truncations.get(learner))
            self.ended = over if any(over) else None
        return False


class ParallelEpisodes(LearnerEpisodes):
    """`LearnerEpisodes` of a Parallel environment, where all live agents with an observation move at once."""

    _views: tuple[Mapping[Any, Any], Mapping[Any, Info]] = {}, {}

    @override
    def begin(self, seed: int | None, options: Info | None, opponent_seed: tuple[int, ...]) -> None:
        super().begin(seed, options, opponent_seed)
        self._dead = set[Any]()  # agents that have ended and are still listed in `agents`

    @override
    def _look(self, views: Any) -> None:
        self._views = observations, infos = views
        if self.ended is None and self.agent in observations:
            # The environment may write into its arrays later.
            self.seen = copied((observations[self.agent], infos.get(self.agent, {})))

    @override
    def play(self, actions: Sequence[Any], play_out: bool) -> Asking[bool]:
        env, learner = self._env, self.agent
        while agents := [agent for agent in env.agents if agent not in self._dead]:
            self._follow()
            observations, infos = self._views
            movers = [agent for agent in agents if agent in observations]
            if not movers:
                raise RuntimeError(f"env must return an observation of at least one of {agents}, got none from {env}")
            if learner in movers and not actions:
                return self.ended is None  # if it has respawned, no policy can act for it
            others = [agent for agent in movers if agent != learner]
            policy_of = self._opponents.policy_of
            asks = [(policy_of(agent), agent, observations[agent], infos.get(agent, {})) for agent in others]
            chosen = dict(zip(others, (yield asks), strict=True))
            chosen.update((learner, action) for action in actions)
            actions = ()
            outcome = env.step({agent: chosen[agent] for agent in movers})
            observations, rewards, terminations, truncations, infos = outcome
            self._reward += reward_number(learner, rewards.get(learner))  # some environments reward dead agents, too
            self._look((observations, infos))
            follow_ends(self._dead, terminations, truncations)
            self._dead.intersection_update(env.agents)  # an agent that was removed may respawn without flags
            over = bool(terminations.get(learner, False)), bool(truncations.get(learner, False))
            if self.ended is None and any(over):
                self.ended = over
            if self.ended is not None and not play_out:
                return False
        self._follow()
        return False


def episodes_of(env: Any, wrapper: Any, opponents: SeatPolicies, learner: int) -> LearnerEpisodes:
    """Returns the episodes of an environment; arguments as in `LearnerEpisodes`."""
    kind = AECEpisodes if isinstance(env, AECEnv) else ParallelEpisodes
    return kind(env, wrapper, opponents, learner)
