"""`LearnerEnv`: a multi-agent environment as a single-agent trainer sees it, the other seats played by policies."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Discrete
from numpy.typing import NDArray
from pettingzoo.utils.env import AECEnv, ParallelEnv
from typing_extensions import override

from pz_policymap.arguments import MAX_INDEX, boolean, integer
from pz_policymap.batching.act import mask_of
from pz_policymap.learner.episodes import LearnerEpisodes
from pz_policymap.learner.global_generators import OwnRandomness
from pz_policymap.learner.seats import common_spaces, possible_seats
from pz_policymap.mappings.conversion import MappingLike, as_mapping
from pz_policymap.policies.action_masks import flat_mask, without_mask
from pz_policymap.policies.seat_policies import SeatPolicies
from pz_policymap.wrappers.find import find_policy_wrapper
from pz_policymap.wrappers.pettingzoo_tags import Info

_MOST_EPISODES = 1000  # in a row that are over before the learner's first turn


class LearnerEnv(gymnasium.Env[Any, Any]):
    """A `gymnasium.Env` in which one policy, the learner, acts, and the policies of the other seats answer.

    The learner plays the seat that the mapping gives it, which may be another one in each episode. Between its turns
    the others move, and what it earns meanwhile is added up, from the beginning of the episode on. An episode that is
    over before its first turn is followed by the next. When the learner has ended, the others play on to the end, so
    that `record_results` inside sees whole episodes: without those that a learner did not live to see, results would
    be biased.

    The action mask, in the observation or in the info, is served by `action_masks()`, as MaskablePPO asks for it, and
    leaves the observation: of PettingZoo's `{"observation": ..., "action_mask": ...}`, the observation is left.

    `reset(seed=s)` seeds the environment, the action spaces of its agents, and, unless they are pinned, the
    assignments. What opponents draw from the global generators of Python, NumPy and torch (CPU) follows from it, too:
    these are exchanged for others while `reset` and `step` run, and put back after them, so the trainer's own go on
    as if nothing had been drawn. That holds in a process that draws in one thread. A generator that a policy keeps to
    itself is its own to seed.

    Args:
        env: A PettingZoo AEC or Parallel environment with a policy wrapper around or inside it (see `wrap`).
        policies: Who plays the other seats, by policy index: a dict or a sequence, which need not hold the learner.
            It is looked up at every reset. A policy is a function `(observation, agent, info) -> action`, which is
            handed what the environment says, mask included; or an object with `predict`, as Stable-Baselines3 has it,
            which is handed a batch with a row a seat, without the mask, and of `state`, `episode_start` and
            `action_masks` what its signature names. A state is kept for each seat, until the episode ends.
        learner: The policy that acts through this environment.
        play_out: Whether the others play on when the learner has ended. If False, the episode is cut: for games that
            would never end without it.

    Attributes:
        env: As given.
        learner: As given.
        play_out: As given.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If there is no policy wrapper, or the environment has no `possible_agents`; here and at reset, if
            the learner does not play exactly one seat, or not the same spaces in all seats that it can hold.

    Example:
        >>> import pz_policymap as pm
        >>> from pettingzoo.classic import rps_v2
        >>> def rock(observation, agent, info):
        ...     return 0
        >>> mapping = pm.Focal(pm.Fixed(0), pm.Fixed(1))
        >>> env = pm.LearnerEnv(pm.wrap(rps_v2.env(), mapping, resample_every=1), {1: rock})
        >>> observation, info = env.reset(seed=3)
        >>> env.agent, env.policy_ids
        ('player_1', {'player_0': 1, 'player_1': 0})
        >>> env.step(1)[1]  # paper
        1.0
    """

    def __init__(
        self,
        env: AECEnv[Any, Any, Any] | ParallelEnv[Any, Any, Any],
        policies: Mapping[int, Any] | Sequence[Any],
        learner: int = 0,
        play_out: bool = True,
    ) -> None:
        if not isinstance(env, (AECEnv, ParallelEnv)):
            raise TypeError(f"env must be a PettingZoo AECEnv or ParallelEnv, got {env!r} ({type(env).__name__})")
        self._wrapper = find_policy_wrapper(env)
        if getattr(env, "possible_agents", None) is None:
            raise ValueError(f"env must have possible_agents, for their spaces are the learner's, got {env}")
        self.env = env
        self.learner = integer("learner", learner, 0, MAX_INDEX)
        self.play_out = boolean("play_out", play_out)
        self._opponents = SeatPolicies(policies, env.action_space)
        self._episodes = LearnerEpisodes(env, self._wrapper, self._opponents, self.learner)
        assigner = self._wrapper.assigner
        self._seats = possible_seats(assigner.mapping, assigner, self.learner)
        # Copies: a trainer that samples actions must not touch the randomness of opponents that do.
        self.observation_space, self.action_space = copy.deepcopy(common_spaces(env, self._seats))
        self.metadata = {"render_modes": [], **env.metadata}
        self.render_mode = getattr(env, "render_mode", None)
        self._own: OwnRandomness | None = None
        self._mask: Any = None
        self._playing = False

    @property
    def agent(self) -> Any:
        """The agent that the learner plays in this episode.

        Raises:
            AttributeError: Before the first reset.
        """
        if self._episodes.agent is None:
            raise AttributeError("agent cannot be accessed before reset")
        return self._episodes.agent

    @property
    def policy_ids(self) -> dict[Any, int]:
        """Who plays whom in this episode, agent to policy.

        Raises:
            AttributeError: Before the first reset.
        """
        policy_ids: dict[Any, int] = self._wrapper.policy_ids
        return policy_ids

    def set_policies(self, policies: Mapping[int, Any] | Sequence[Any]) -> None:
        """Lets other policies play from the next reset on; those of the running episode finish it.

        Through a vector environment: `vec_env.env_method("set_policies", policies)` (Stable-Baselines3) or
        `envs.call("set_policies", policies)` (Gymnasium). Workers in other processes are sent copies.

        Args:
            policies: As at construction.

        Raises:
            TypeError: If they are neither a dict nor a sequence.
        """
        self._opponents.replace(policies)

    def set_mapping(self, mapping: MappingLike, now: bool = False) -> None:
        """Follows another rule from the next draw on; reached through a vector environment as `set_policies` is.

        Args:
            mapping: A `PolicyMapping`, a function (see `FromFunction`) or the size of a population.
            now: Whether to draw at the next reset, whatever the cadence.

        Raises:
            TypeError, ValueError: As at construction; the old mapping stays then.
        """
        rule = as_mapping(mapping)
        seats = [*self._seats, *possible_seats(rule, self._wrapper.assigner, self.learner)]
        common_spaces(self.env, seats)
        self._wrapper.set_mapping(rule, now)
        self._seats = list(dict.fromkeys(seats))

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns which actions the learner may choose now, one boolean an action; all, where there is no mask.

        Raises:
            ResetNeeded: Before the first reset.
            TypeError: If there is no mask and the actions cannot be counted.
        """
        if self._episodes.agent is None:
            raise ResetNeeded("action_masks cannot be called before reset")
        return flat_mask(self._mask, self.action_space)

    @override
    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Begins an episode, and returns what the learner sees at its first turn.

        Args:
            seed: Seeds all that is random here, the trainer's own aside.
            options: Go to the wrapped environment, a forced matchup (`policy_ids`) included.

        Raises:
            KeyError: If an opponent is missing.
            TypeError: If an opponent is no policy.
            ValueError: If the learner does not play exactly one seat, if it has other spaces there, or if a thousand
                episodes in a row are over before its first turn.
        """
        self._playing = False
        super().reset(seed=seed)
        if seed is not None or self._own is None:
            self._own = OwnRandomness(int(self.np_random.integers(2**32)))
        if seed is not None:
            for agent in self.env.possible_agents:
                self.env.action_space(agent).seed(int(self.np_random.integers(2**32)))
        with self._own.in_place():
            for _ in range(_MOST_EPISODES):
                self._check_seat(self._episodes.begin(seed, options))
                if self._episodes.until_turn():
                    first = self._seen()
                    self._playing = True
                    return first
                if self.play_out:
                    self._episodes.play_out()
                seed = None
        raise ValueError(f"env must give the learner a turn, and {_MOST_EPISODES} episodes in a row gave it none")

    @override
    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """Acts for the learner, and returns what it sees at its next turn or at its end.

        Raises:
            ResetNeeded: If no episode is being played: before the first reset, after the end, or after an error.
        """
        if not self._playing or self._own is None:
            raise ResetNeeded("step cannot be called before reset, nor after the end of an episode or an error")
        episodes, self._playing = self._episodes, False  # where somebody raises, nobody knows whose turn it is
        with self._own.in_place():
            episodes.act(action)
            goes_on = episodes.until_turn()
            if self.play_out and not goes_on:
                episodes.play_out()
        observation, info = self._seen()
        self._playing = goes_on
        terminated, truncated = (False, False) if goes_on else episodes.ended
        return observation, episodes.take_reward(), terminated, truncated, info

    @override
    def render(self) -> Any:
        """Renders the wrapped environment."""
        return self.env.render()

    @override
    def close(self) -> None:
        """Closes the wrapped environment."""
        self.env.close()  # type: ignore[no-untyped-call]

    def _check_seat(self, agent: Any) -> None:
        """Raises where the learner sits as it was not foreseen, and sees or does something else there."""
        if agent not in self._seats:
            common_spaces(self.env, [*self._seats, agent])
            self._seats.append(agent)

    def _seen(self) -> tuple[Any, Info]:
        observation, info = self._episodes.seen
        self._mask = mask_of(observation, info)
        observation = without_mask(observation)
        if isinstance(self.observation_space, Discrete) and isinstance(observation, np.ndarray):
            # Trainers want a number, and some environments hand out an array of one.
            observation = observation.reshape(-1)[0]
        return observation, dict(info)
