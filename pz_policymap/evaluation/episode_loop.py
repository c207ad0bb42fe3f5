"""One episode of an AEC or Parallel environment, from `reset` to its end."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
from pettingzoo.utils.env import AECEnv

from pz_policymap.policies.seat_policies import SeatPolicies
from pz_policymap.recording.rewards import reward_number
from pz_policymap.recording.running_episode import follow_ends
from pz_policymap.results.sums import added
from pz_policymap.wrappers.find import key_of_tags


class PlayError(RuntimeError):
    """An environment or a policy raised an error in an episode.

    Attributes:
        policy: The policy at fault, by id or name; None: the environment.
        agent: The agent that the policy controlled.
        details: The traceback, as text; it survives the way from a worker process.
    """

    policy: Any = None
    agent: Any = None
    details: str = ""

    def within(self, what: str) -> PlayError:
        """Returns the same error, with the episode or game named in front."""
        error = PlayError(f"{what}: {self}")
        error.policy, error.agent, error.details = self.policy, self.agent, self.details
        return error


class Outcome:
    """Returns, lengths and ends of the agents of one episode, by the rules of `record_results`.

    Attributes:
        returns: The sum of the rewards of each agent.
        lengths: The number of steps of each agent until its end.
        ended: Agents that have terminated or were truncated.
        moves: A checksum of all actions in their order, to tell identical episodes from different ones.
    """

    def __init__(self) -> None:
        self._sums: dict[Any, tuple[float, float]] = {}
        self.lengths: dict[Any, int] = {}
        self.ended = set[Any]()
        self.moves = 0
        self._listed: tuple[Any, ...] = ()  # the last agents of the environment, before there were none

    @property
    def returns(self) -> dict[Any, float]:
        """The sum of the rewards of each agent."""
        return {agent: total for agent, (total, _) in self._sums.items()}

    @property
    def complete(self) -> bool:
        """Whether every agent has ended, except those removed without flags while others went on."""
        return self.ended.issuperset(self._listed)

    def seat(self, agents: Any) -> None:
        """Adds agents; those already known keep what they have."""
        for agent in agents:
            if agent not in self._sums:
                self._sums[agent], self.lengths[agent] = (0.0, 0.0), 0

    def follow(self, agents: Any) -> None:
        """Adds the agents that the environment lists after `reset` or a step."""
        self.seat(agents)
        self._listed = tuple(agents) or self._listed

    def earn(self, rewards: Mapping[Any, Any]) -> None:
        """Adds the rewards of one step; keys that are not agents are ignored.

        Raises:
            ValueError: If a reward is not a number.
        """
        for agent, reward in rewards.items():
            if agent in self._sums and (number := reward_number(agent, reward)):
                self._sums[agent] = added(*self._sums[agent], number)

    def note(self, action: Any) -> None:
        """Adds an action to the checksum."""
        if isinstance(action, (int, np.integer)):
            self.moves = crc32(b"%d;" % action, self.moves)
        elif isinstance(action, np.ndarray):
            self.moves = crc32(action.tobytes(), self.moves)
        else:
            self.moves = crc32(repr(action).encode(), self.moves)


class EpisodeLoop:
    """Plays episodes of one environment with the policies of its seats.

    Args:
        env: A PettingZoo environment. It must carry tags if `play` is called without an assignment.
        seats: The policies.
        name_of: Returns the text for a policy in error messages.
        info_key: As in `record_results`.
    """

    def __init__(
        self, env: Any, seats: SeatPolicies, name_of: Callable[[Any], str], info_key: str | None = None
    ) -> None:
        self._env, self._seats, self._name_of = env, seats, name_of
        self._info_key = key_of_tags(env, info_key)
        self._play = self._play_aec if isinstance(env, AECEnv) else self._play_parallel

    def play(self, reset_seed: int | None, policy_seed: int | tuple[int, ...], assignment: dict[Any, Any]) -> Outcome:
        """Plays one episode.

        Args:
            reset_seed: Passed to `reset`.
            policy_seed: Seeds the generators of policies that take `rng`.
            assignment: Agent -> policy. Agents that are missing are assigned by their tag in the infos.

        Raises:
            PlayError: If the environment or a policy raises an error or calls `sys.exit`.
        """
        outcome = Outcome()
        self._assigned = dict(assignment)
        self._failure: Callable[[BaseException], PlayError] = self._last_failure
        try:
            self._seats.begin(assignment, policy_seed)
            self._failure = _environment_failure  # while the environment acts
            self._play(reset_seed, outcome)
        except (Exception, SystemExit) as error:
            raise self._failure(error) from error
        return outcome

    def _play_aec(self, reset_seed: int | None, outcome: Outcome) -> None:
        env, act, assigned, ended = self._env, self._seats.act, self._assigned, outcome.ended
        env.reset(seed=reset_seed)
        outcome.follow(env.agents)
        while env.agents:
            agent = env.agent_selection
            observation, _, terminated, truncated, info = env.last()
            if terminated or truncated:
                ended.add(agent)
                env.step(None)
                continue
            if agent not in assigned:
                self._join(agent, info, outcome)
            self._failure = partial(self._policy_failure, agent)
            action = act(agent, observation, info)
            self._failure = partial(self._step_failure, {agent: action})
            outcome.note(action)
            env.step(action)
            self._failure = _environment_failure
            outcome.lengths[agent] += 1
            outcome.follow(env.agents)
            outcome.earn(env.rewards)
            if not env.agents:  # emptied with the last step: no dead steps follow
                ended.update(agent for agent, over in env.terminations.items() if over)
                ended.update(agent for agent, over in env.truncations.items() if over)

    def _play_parallel(self, reset_seed: int | None, outcome: Outcome) -> None:
        env, assigned, ended = self._env, self._assigned, outcome.ended
        observations, infos = env.reset(seed=reset_seed)
        outcome.follow(env.agents)
        agents = list(env.agents)
        while agents:
            for agent in agents:
                if agent not in assigned:
                    self._join(agent, infos.get(agent, {}), outcome)
            seen = {agent: observations[agent] for agent in agents if agent in observations}
            if not seen:
                raise RuntimeError(f"env must return an observation of at least one of {agents}, got none from {env}")
            self._failure = self._last_failure
            actions = self._seats.act_together(seen, {agent: infos.get(agent, {}) for agent in seen})
            self._failure = partial(self._step_failure, actions)
            for action in actions.values():
                outcome.note(action)
            observations, rewards, terminations, truncations, infos = env.step(actions)
            self._failure = _environment_failure
            outcome.follow(env.agents)
            outcome.earn(rewards)
            for agent in agents:
                if agent not in ended:  # `agents` may lag behind terminations
                    outcome.lengths[agent] += 1
            follow_ends(ended, terminations, truncations)
            agents = [] if ended.issuperset(env.agents) else list(env.agents)

    def _join(self, agent: Any, info: Mapping[str, Any], outcome: Outcome) -> None:
        """Seats an agent without an assignment, with the policy in its tag."""
        outcome.seat([agent])
        if self._info_key not in info:
            raise KeyError(f"agent {agent!r} is not among possible_agents, and its info has no {self._info_key}")
        self._assigned[agent] = info[self._info_key]
        self._failure = self._last_failure
        self._seats.join(agent, self._assigned[agent])
        self._failure = _environment_failure

    def _policy_failure(self, agent: Any, error: BaseException) -> PlayError:
        policy = self._assigned[agent]
        where = _text_and_place(error)
        text = f"policy {self._name_of(policy)}, which controls agent {agent!r}, raised {where}"
        return _play_error(text, error, policy, agent)

    def _last_failure(self, error: BaseException) -> PlayError:
        """Returns the error of the policy called last. No policy is called again: that would change its state."""
        return self._policy_failure(self._seats.asked[-1], error)

    def _step_failure(self, actions: Mapping[Any, Any], error: BaseException) -> PlayError:
        """Returns the error of a failed step: a policy's if its action is not in the space, else the environment's."""
        where = _text_and_place(error)
        for agent, action in actions.items():
            policy, space = self._assigned[agent], self._env.action_space(agent)
            if not space.contains(action):
                text = (
                    f"policy {self._name_of(policy)}, which controls agent {agent!r}, returned the action {action!r}, "
                    f"which is not in {space}: {where}"
                )
                return _play_error(text, error, policy, agent)
        acted = ", ".join(
            f"{action!r} of policy {self._name_of(self._assigned[agent])} for agent {agent!r}"
            for agent, action in actions.items()
        )
        return _play_error(f"the environment raised {where} at the action {acted}", error)


def _environment_failure(error: BaseException) -> PlayError:
    return _play_error(_text_and_place(error), error)


def _play_error(text: str, error: BaseException, policy: Any = None, agent: Any = None) -> PlayError:
    failure = PlayError(text)
    failure.policy, failure.agent = policy, agent
    failure.details = "".join(traceback.format_exception(error))
    return failure


def error_text(error: BaseException) -> str:
    """Returns class and message of an error on one line."""
    message = " ".join(str(error).split())
    if isinstance(error, SystemExit):
        return f"sys.exit({message})"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _text_and_place(error: BaseException) -> str:
    """Returns the text of an error, and file and line where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "unknown place"
    return f"{error_text(error)} ({place})"
