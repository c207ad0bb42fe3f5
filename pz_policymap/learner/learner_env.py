"""`LearnerEnv`: a multi-agent environment in single-agent form, with policies controlling the other seats."""

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
from pz_policymap.learner.answers import answered
from pz_policymap.learner.episodes import Asking, episodes_of
from pz_policymap.learner.global_generators import IsolatedRandomness
from pz_policymap.learner.seats import LearnerSeats
from pz_policymap.mappings.conversion import MappingLike, as_mapping
from pz_policymap.policies.action_masks import flat_mask, without_mask
from pz_policymap.policies.seat_policies import SeatPolicies
from pz_policymap.recording.finished import Unreported
from pz_policymap.recording.record import recorders_in
from pz_policymap.wrappers.find import find_policy_wrapper
from pz_policymap.wrappers.pettingzoo_tags import Info

_MOST_EPISODES = 1000  # in a row that end before the learner's first turn


class LearnerEnv(gymnasium.Env[Any, Any]):
    """A `gymnasium.Env` in which one policy, the learner, acts while other policies control the other seats.

    The learner controls the seat that the mapping assigns to it, which may change from episode to episode. Of several
    seats it takes one, drawn from seed and episode, and `policies[learner]`, such as a copy of its network, controls
    the others. Between its turns the others move, and its rewards are summed up, as `record_results` counts them. An
    episode that ends before its first turn is followed by the next. After the learner's end the others play on, so
    that `record_results` inside sees whole episodes: without them, results would be biased. The learner's last info
    holds the episodes that were recorded, for `finished_episodes`.

    The action mask, in the observation or in the info, is returned by `action_masks()`, as MaskablePPO expects, and is
    removed from the observation. Of PettingZoo's `{"observation": ..., "action_mask": ...}`, the observation remains.

    Randomness: `reset(seed=s)` seeds the environment, the action spaces of its agents and, unless they are pinned, the
    assignments. It also seeds the generators of opponents that have a parameter `rng`. Such opponents follow from the
    seed in every vector environment, `SubprocVecEnv` and `AsyncVectorEnv` included, and pass Gymnasium's `check_env`.
    Opponents that draw from the global generators of Python, NumPy or torch share them with the trainer: under
    `DummyVecEnv`, the order of environments matters, and under `SubprocVecEnv` each worker has its own, which forked
    workers start from equal states. For those, `isolate_randomness=True` gives results that follow from the seed.

    Many environments: every vectorizer of Gymnasium and Stable-Baselines3 takes this one. In `LearnerVectorEnv` and
    `pz_policymap.adapters.stable_baselines3.LearnerVecEnv`, opponents with `predict` act for all environments in one
    batch.

    Args:
        env: A PettingZoo AEC or Parallel environment with a policy wrapper around or inside it (see `wrap`).
        policies: The policies of the other seats by policy id, a dict or a sequence. The learner's place may be None or
            missing if it never meets itself. A dict may grow; it is read at every reset. A policy is a function
            `(observation, agent, info) -> action`, which receives the observation with its mask and, if it has a
            parameter `rng`, a `numpy.random.Generator`; or an object with `predict`, as in Stable-Baselines3, which
            receives a batch with one row per seat, without the mask, and those of `state`, `episode_start` and
            `action_masks` that its signature names; or "random".
        learner: The policy id of the learner.
        play_out: Whether the others play on after the learner's end. If False, the episode is interrupted, which suits
            games that would never end without it.
        isolate_randomness: Whether the global generators of Python, NumPy and torch (CPU) are exchanged for others,
            which `reset(seed=...)` seeds, while `reset` and `step` run. This makes opponents that draw from them
            reproducible, takes about 0.1 ms per step, and holds in a process that draws in one thread.

    Attributes:
        env, learner, play_out, isolate_randomness: As given.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If no policy wrapper is found, or the environment has no `possible_agents`; here and at reset, if
            the learner controls no seat, several without `policies[learner]`, or seats that differ in their spaces.

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
        isolate_randomness: bool = False,
    ) -> None:
        if not isinstance(env, (AECEnv, ParallelEnv)):
            raise TypeError(f"env must be a PettingZoo AECEnv or ParallelEnv, got {env!r} ({type(env).__name__})")
        self._wrapper = find_policy_wrapper(env)
        if getattr(env, "possible_agents", None) is None:
            raise ValueError(
                f"env must have possible_agents, whose spaces become the learner's, got {env}; "
                f"reset it before wrapping if it defines them at reset"
            )
        self.env = env
        self.learner = integer("learner", learner, 0, MAX_INDEX)
        self.play_out = boolean("play_out", play_out)
        self._opponents = SeatPolicies(policies, env.action_space)
        self._episodes = episodes_of(env, self._wrapper, self._opponents, self.learner)
        self._seats = LearnerSeats(env, self._wrapper.assigner, self.learner, self._opponents)
        # Copies, so that sampling by a trainer does not change the samples of opponents.
        self.observation_space, self.action_space = copy.deepcopy(self._seats.spaces)
        self.metadata = {"render_modes": [], **env.metadata}
        self.render_mode = getattr(env, "render_mode", None)
        self.isolate_randomness = boolean("isolate_randomness", isolate_randomness)
        self._generators: IsolatedRandomness | None = None
        self._opponent_seed: int | None = None
        self._episode = 0  # number of episodes since the last seed
        self._observes_numbers = isinstance(self.observation_space, Discrete)
        self._playing = False
        self._unreported = Unreported(next(recorders_in(env), None))

    def __repr__(self) -> str:
        inner = str(self.env)
        inner = inner if inner.startswith("<") else f"<{inner}>"
        return f"<{type(self).__name__}{inner}, learner={self.learner}>"

    __str__ = __repr__

    @property
    def agent(self) -> Any:
        """The agent that the learner controls in this episode.

        Raises:
            AttributeError: Before the first reset.
        """
        if self._episodes.agent is None:
            raise AttributeError("agent cannot be accessed before reset")
        return self._episodes.agent

    @property
    def policy_ids(self) -> dict[Any, int]:
        """Agent -> policy id in this episode.

        Raises:
            AttributeError: Before the first reset.
        """
        policy_ids: dict[Any, int] = self._wrapper.policy_ids
        return policy_ids

    @property
    def policies_in_use(self) -> set[int]:
        """The policies of the draw in force and of the running episode, the learner included."""
        in_use: set[int] = self._wrapper.policies_in_use
        return in_use

    def set_policies(self, policies: Mapping[int, Any] | Sequence[Any]) -> None:
        """Uses other policies from the next reset on; the running episode is finished by the old ones.

        Through a vector environment: `vec_env.env_method("set_policies", policies)` (Stable-Baselines3) or
        `envs.call("set_policies", policies)` (Gymnasium). Workers in other processes, as of `SubprocVecEnv`, receive
        copies; their opponents draw apart if they take `rng` or with `isolate_randomness=True`.

        Args:
            policies: As at construction.

        Raises:
            TypeError: If they are neither a dict nor a sequence, or if one of them is not a policy.
        """
        self._opponents.replace(policies)

    def set_mapping(self, mapping: MappingLike, now: bool = False) -> None:
        """Follows another mapping from the next draw on; reached through a vector environment as `set_policies` is.

        Args:
            mapping: A `PolicyMapping`, its text form, a function (see `FromFunction`), or the size of a population.
            now: Whether to resample at the next reset, regardless of the cadence.

        Raises:
            TypeError, ValueError: As in the constructor; the old mapping stays then.
        """
        rule = as_mapping(mapping)
        self._seats.follow(rule)
        self._wrapper.set_mapping(rule, now)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the assignments, for `pm.save`; an episode that is running is repeated when resumed."""
        state: dict[str, Any] = self._wrapper.assigner.state_dict(unfinished=self._playing)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes the assignments of a state, and pins their seed; the next call must be `reset`.

        Raises:
            TypeError, ValueError: If the state does not fit; nothing has changed then.
        """
        self._wrapper.load_state_dict(state)
        self._playing = False

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns the actions that the learner may choose now, one boolean per action; all without a mask.

        Raises:
            ResetNeeded: Before the first reset.
            TypeError: If the action space is not countable and the environment gives no mask.
        """
        if self._episodes.agent is None:
            raise ResetNeeded("action_masks cannot be called before reset")
        return flat_mask(mask_of(*self._episodes.seen), self.action_space)

    @override
    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Begins an episode, and returns the learner's first observation and info.

        Args:
            seed: Seeds all randomness of the environment and its opponents; see the class.
            options: Passed to the wrapped environment, a forced matchup (`policy_ids`) included.

        Raises:
            KeyError: If an opponent is missing.
            TypeError: If an opponent is not a policy.
            ValueError: If the learner controls no seat, several without `policies[learner]`, or one with other spaces;
                or if a thousand episodes in a row end before its first turn.
        """
        asking = self.resetting(seed, options)  # which may replace the generators
        return answered(asking, self._generators)

    def resetting(self, seed: int | None = None, options: Info | None = None) -> Asking[tuple[Any, Info]]:
        """Does the same as `reset`, as a generator that yields the requests to opponents."""
        self._playing = False
        super().reset(seed=seed)
        if seed is not None or self._opponent_seed is None:
            self._opponent_seed, self._episode = int(self.np_random.integers(2**32)), 0
            self._generators = IsolatedRandomness(self._opponent_seed) if self.isolate_randomness else None
        if seed is not None:
            for agent in self.env.possible_agents:
                self.env.action_space(agent).seed(int(self.np_random.integers(2**32)))
        return self._begun(seed, options, self._opponent_seed)

    def _begun(self, seed: int | None, options: Info | None, opponent_seed: int) -> Asking[tuple[Any, Info]]:
        """Begins episodes until one gives the learner a turn."""
        episodes = self._episodes
        for _ in range(_MOST_EPISODES):
            self._episode += 1
            episodes.begin(seed, options, (opponent_seed, self._episode))
            self._seats.include([episodes.agent])
            if (yield from episodes.play((), self.play_out)):
                self._playing = True
                return self._seen()
            self._unreported.collect()
            seed = None
        raise ValueError(f"env must give the learner a turn, got {_MOST_EPISODES} episodes in a row without one")

    @override
    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """Acts for the learner, and returns its next observation, or its last one if it has ended.

        Raises:
            ResetNeeded: If no episode is running: before the first reset, after the end, or after an error.
        """
        return answered(self.stepping(action), self._generators)

    def stepping(self, action: Any) -> Asking[tuple[Any, float, bool, bool, Info]]:
        """Does the same as `step`, as a generator that yields the requests to opponents."""
        if not self._playing:
            raise ResetNeeded("step cannot be called before reset, nor after the end of an episode or an error")
        episodes, self._playing = self._episodes, False  # after an error, an episode cannot continue
        goes_on = yield from episodes.play((action,), self.play_out)
        observation, info = self._seen()
        self._playing = goes_on
        if not goes_on:
            self._unreported.collect()
            self._unreported.report(info)
        # An agent that is removed without flags has terminated.
        terminated, truncated = (False, False) if goes_on else episodes.ended or (True, False)
        return observation, episodes.take_reward(), terminated, truncated, info

    @override
    def render(self) -> Any:
        """Renders the wrapped environment."""
        return self.env.render()

    @override
    def close(self) -> None:
        """Closes the wrapped environment."""
        self.env.close()  # type: ignore[no-untyped-call]

    def _seen(self) -> tuple[Any, Info]:
        observation, info = self._episodes.seen
        observation = without_mask(observation)
        if self._observes_numbers and isinstance(observation, np.ndarray):
            # Trainers expect a number, and some environments return an array with one element.
            observation = observation.reshape(-1)[0]
        return observation, dict(info)
