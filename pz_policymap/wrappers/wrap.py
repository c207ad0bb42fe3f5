"""`wrap` and `env_fns`: the entry points."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import gymnasium
from gymnasium.core import ActType
from gymnasium.core import ObsType as EnvObsType
from gymnasium.vector import VectorEnv
from pettingzoo.utils.env import ActionType, AECEnv, AgentID, ObsType, ParallelEnv
from typing_extensions import Unpack

from pz_policymap.arguments import integer, seed_of
from pz_policymap.assigner import PolicyAssigner
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.conversion import MappingLike, as_mapping
from pz_policymap.wrappers.aec import PolicyMapAEC
from pz_policymap.wrappers.multi_agent_vector import PolicyMapMultiAgentVector, is_simulator
from pz_policymap.wrappers.parallel import PolicyMapParallel
from pz_policymap.wrappers.policy_wrapper import DEFAULT_KEY, WrapOptions, split_options
from pz_policymap.wrappers.single_agent import PolicyMapEnv
from pz_policymap.wrappers.vector import PolicyMapVector

if TYPE_CHECKING:
    from gymnasium.vector import AutoresetMode  # which Gymnasium 1.0 does not have


@overload
def wrap(
    env: VectorEnv,
    mapping: MappingLike,
    *,
    agents: int | Sequence[Hashable] | None = None,
    autoreset_mode: AutoresetMode | str | None = None,
    episode_length: int | None = None,
    **options: Unpack[WrapOptions],
) -> PolicyMapVector: ...


@overload
def wrap(
    env: gymnasium.Env[EnvObsType, ActType], mapping: MappingLike, **options: Unpack[WrapOptions]
) -> PolicyMapEnv[EnvObsType, ActType]: ...


@overload
def wrap(
    env: AECEnv[AgentID, ObsType, ActionType], mapping: MappingLike, **options: Unpack[WrapOptions]
) -> PolicyMapAEC[AgentID, ObsType, ActionType]: ...


@overload
def wrap(
    env: ParallelEnv[AgentID, ObsType, ActionType], mapping: MappingLike, **options: Unpack[WrapOptions]
) -> PolicyMapParallel[AgentID, ObsType, ActionType]: ...


@overload
def wrap(
    env: Any,
    mapping: MappingLike,
    *,
    agents: Sequence[Hashable] | None = None,
    autoreset_mode: AutoresetMode | str | None = None,
    episode_length: int | None = None,
    **options: Unpack[WrapOptions],
) -> PolicyMapMultiAgentVector: ...


def wrap(
    env: Any,
    mapping: MappingLike,
    *,
    resample_every: int | None = None,
    warmup_episodes: int = 0,
    seed: int | Sequence[int] | None = None,
    env_index: int | None = None,
    info_key: str = DEFAULT_KEY,
    agents: int | Sequence[Hashable] | None = None,
    autoreset_mode: AutoresetMode | str | None = None,
    episode_length: int | None = None,
) -> Any:
    """Wraps an environment so that every agent's info names the policy that controls the agent.

    Every `reset` begins an episode, numbered from 0. The mapping draws the policies of all agents at once, at every
    episode that is divisible by `resample_every`. They hold until the next draw; agents that join mid-episode are
    added.

    Args:
        env: A PettingZoo AEC or Parallel environment, a Gymnasium environment, a Gymnasium vector environment, or a
            batched multi-agent simulator: it has `num_envs` and agents, and its dicts go from agent to arrays.
        mapping: A `PolicyMapping`, its text form, a function `fn(agents, draw) -> {agent: policy}` (see
            `FromFunction`), or the size of a population (see `Uniform`).
        resample_every: Number of episodes between resamples, >= 1. None: 10, or 1 for mappings that are schedules.
        warmup_episodes: Number of first episodes that each resample, so that bugs surface early, >= 0.
        seed: Pins the assignments: `reset(seed=...)` then seeds the environment only. None: `reset(seed=s)` also
            restarts the assignment schedule at episode 0; without any seed, one is taken from OS entropy at the first
            reset. Copies of an environment that is pinned to one seed and index all get the same assignments; use
            `env_fns`, which gives each its own index.
        env_index: Index of this environment among many, >= 0; required by mappings that span environments.
        info_key: Key of the tag in each info. It is an error if the environment already uses it.
        agents: Of a vector environment: number of rows per environment, or the names of its agents in seat order.
            None: the agents that the environment declares, or else one. Of a simulator: the names of its agents.
        autoreset_mode: Of a vector environment or a simulator that does not declare it.
        episode_length: Of a vector environment or a simulator whose episodes all have the same number of steps, >= 1.
            Its done flags are then not read.

    Returns:
        A `PolicyMapAEC`, a `PolicyMapParallel`, a `PolicyMapEnv`, a `PolicyMapVector` or a
        `PolicyMapMultiAgentVector`.

    Raises:
        TypeError: If `env` or another argument has the wrong type, or if `agents`, `autoreset_mode` or
            `episode_length` comes with a single environment.
        ValueError: If an argument is out of range, or if the mapping cannot serve this environment.

    Example:
        >>> import pz_policymap as pm
        >>> from mpe2 import simple_spread_v3
        >>> env = pm.wrap(simple_spread_v3.parallel_env(), pm.Weighted([0.5, 0.25, 0.25]), resample_every=1)
        >>> observations, infos = env.reset(seed=1)
        >>> env.policy_ids
        {'agent_0': 2, 'agent_1': 0, 'agent_2': 0}
    """
    options: Any = {"resample_every": resample_every, "warmup_episodes": warmup_episodes, "seed": seed}
    options |= {"env_index": env_index, "info_key": info_key}
    of_vector: Any = {"agents": agents, "autoreset_mode": autoreset_mode, "episode_length": episode_length}
    of_vector = {name: value for name, value in of_vector.items() if value is not None}
    if isinstance(env, VectorEnv):
        return PolicyMapVector(env, mapping, **options, **of_vector)
    if is_simulator(env):
        return PolicyMapMultiAgentVector(env, mapping, **options, **of_vector)
    for kind, wrapper in _WRAPPERS:
        if isinstance(env, kind):
            if of_vector:
                raise TypeError(f"{' and '.join(of_vector)} must be left out for {env!r}, which is not a vector")
            return wrapper(env, mapping, **options)
    raise TypeError(
        f"env must be a PettingZoo AECEnv or ParallelEnv, a Gymnasium Env or VectorEnv, or a simulator with num_envs "
        f"and agents, got {env!r} ({type(env).__name__})"
    )


_WRAPPERS: tuple[tuple[type[Any], type[Any]], ...] = (
    (AECEnv, PolicyMapAEC),
    (ParallelEnv, PolicyMapParallel),
    (gymnasium.Env, PolicyMapEnv),
)


Env = TypeVar("Env")


@dataclass(frozen=True)
class EnvFn(Generic[Env]):
    """Makes and wraps one environment when called. It can be sent to a worker if `make` can.

    Attributes:
        make: Makes the bare environment.
        mapping: The mapping of the wrapped environment.
        options: Its keyword arguments, as in `wrap`.
    """

    make: Callable[[], Env]
    mapping: PolicyMapping
    options: WrapOptions

    def __call__(self) -> Any:
        """Returns a new environment, wrapped.

        Raises:
            TypeError: If `make` returns a vector environment or a simulator, whose rows would share indices with the
                next one's.
        """
        env: Any = self.make()
        if isinstance(env, VectorEnv) or is_simulator(env):
            raise TypeError(f"make must make a single environment, got {env!r}; wrap a vector or a simulator itself")
        return wrap(env, self.mapping, **self.options)


def env_fns(
    make: Callable[[], Any], num_envs: int, mapping: MappingLike, **options: Unpack[WrapOptions]
) -> list[EnvFn[Any]]:
    """Returns functions that make wrapped environments with consecutive environment indices, for any vectorizer.

    Args:
        make: Makes one bare environment.
        num_envs: Number of functions, >= 1.
        mapping: As in `wrap`.
        **options: As in `wrap`. With a `seed`, environment i gets the same assignments in any process. `env_index` is
            the index of the first environment, 0 by default; the one of worker w is `w * num_envs`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a number is out of range, if the mapping needs a `seed`, or if it spans fewer environments.
            Errors that depend on the agents are raised when a function is called.

    Example:
        >>> import pz_policymap as pm
        >>> from mpe2 import simple_spread_v3
        >>> fns = pm.env_fns(simple_spread_v3.parallel_env, 4, pm.ByEnvIndex(2, num_envs=4), seed=0)
        >>> envs = [fn() for fn in fns]
        >>> [env.reset()[1]["agent_0"]["policy_id"] for env in envs]
        [0, 1, 0, 1]
    """
    if not callable(make):
        raise TypeError(f"make must be a function that makes an environment, got {make!r}")
    rule = as_mapping(mapping)
    settings, key = split_options(options)
    count, first = integer("num_envs", num_envs, 1), integer("env_index", settings.get("env_index", 0), 0)
    if "seed" in settings:  # read now: an iterator gives it once, and a list may change
        settings["seed"] = seed_of("seed", settings["seed"])
    # An error of the last environment is raised here, before any worker starts.
    PolicyAssigner(rule, None, **settings | {"env_index": first + count - 1})
    shared: Any = settings | {"info_key": key}
    return [EnvFn(make, rule, shared | {"env_index": first + i}) for i in range(count)]
