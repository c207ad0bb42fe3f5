"""`wrap` and `env_fns`: the way in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import gymnasium
from gymnasium.core import ActType
from gymnasium.core import ObsType as EnvObsType
from gymnasium.vector import VectorEnv
from pettingzoo.utils.env import ActionType, AECEnv, AgentID, ObsType, ParallelEnv

from pz_policymap.arguments import integer, seed_of, text
from pz_policymap.assigner import PolicyAssigner
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.conversion import MappingLike, as_mapping
from pz_policymap.wrappers.aec import PolicyMapAEC
from pz_policymap.wrappers.parallel import PolicyMapParallel
from pz_policymap.wrappers.single_agent import PolicyMapEnv
from pz_policymap.wrappers.vector import PolicyMapVector

if TYPE_CHECKING:
    from gymnasium.vector import AutoresetMode  # which Gymnasium 1.0 does not have


@overload
def wrap(
    env: VectorEnv,
    mapping: MappingLike,
    resample_every: int = 10,
    warmup_episodes: int = 0,
    seed: int | Sequence[int] | None = None,
    env_index: int | None = None,
    info_key: str = "policy_id",
    agents: int | Sequence[Hashable] | None = None,
    autoreset_mode: AutoresetMode | str | None = None,
) -> PolicyMapVector: ...


@overload
def wrap(
    env: gymnasium.Env[EnvObsType, ActType],
    mapping: MappingLike,
    resample_every: int = 10,
    warmup_episodes: int = 0,
    seed: int | Sequence[int] | None = None,
    env_index: int | None = None,
    info_key: str = "policy_id",
) -> PolicyMapEnv[EnvObsType, ActType]: ...


@overload
def wrap(
    env: AECEnv[AgentID, ObsType, ActionType],
    mapping: MappingLike,
    resample_every: int = 10,
    warmup_episodes: int = 0,
    seed: int | Sequence[int] | None = None,
    env_index: int | None = None,
    info_key: str = "policy_id",
) -> PolicyMapAEC[AgentID, ObsType, ActionType]: ...


@overload
def wrap(
    env: ParallelEnv[AgentID, ObsType, ActionType],
    mapping: MappingLike,
    resample_every: int = 10,
    warmup_episodes: int = 0,
    seed: int | Sequence[int] | None = None,
    env_index: int | None = None,
    info_key: str = "policy_id",
) -> PolicyMapParallel[AgentID, ObsType, ActionType]: ...


def wrap(
    env: Any,
    mapping: MappingLike,
    resample_every: int = 10,
    warmup_episodes: int = 0,
    seed: int | Sequence[int] | None = None,
    env_index: int | None = None,
    info_key: str = "policy_id",
    agents: int | Sequence[Hashable] | None = None,
    autoreset_mode: AutoresetMode | str | None = None,
) -> Any:
    """Wraps an environment so that every agent's info names the policy that plays it.

    Args:
        env: A PettingZoo AEC or Parallel environment, a Gymnasium environment or a Gymnasium vector environment.
        mapping: Who plays whom: a `PolicyMapping`, a function `fn(agents, draw) -> {agent: policy}` (see
            `FromFunction`), or the size of a population (see `Uniform`).
        resample_every: Episodes a draw is held for, from 1.
        warmup_episodes: How many episodes at the start draw each for itself, so that a fault shows early.
        seed: Pins the assignments: `reset(seed=...)` seeds the environment alone then. None: `reset(seed=s)` also
            starts the assignments again at episode 0, and without any seed they come from the operating system.
        env_index: Which environment of many this is, from 0; needed by mappings that span environments.
        info_key: The key of the tag. One that the environment uses itself is an error.
        agents: Of a vector environment: how many rows one environment has, or the names of its agents in seat order.
        autoreset_mode: Of a vector environment, where it does not declare it.

    Returns:
        A `PolicyMapAEC`, a `PolicyMapParallel`, a `PolicyMapEnv` or a `PolicyMapVector`.

    Raises:
        TypeError: If `env` is none of these, if an argument has the wrong type, or if `agents` or `autoreset_mode`
            comes with an environment that is no vector.
        ValueError: If an argument is out of range, or if the mapping cannot serve this environment.

    Example:
        >>> import pz_policymap as pm
        >>> from mpe2 import simple_spread_v3
        >>> env = pm.wrap(simple_spread_v3.parallel_env(), pm.Weighted([0.5, 0.25, 0.25]), resample_every=1)
        >>> observations, infos = env.reset(seed=1)
        >>> env.policy_ids
        {'agent_0': 2, 'agent_1': 0, 'agent_2': 0}
    """
    settings = (mapping, resample_every, warmup_episodes, seed, env_index, info_key)
    if isinstance(env, VectorEnv):
        return PolicyMapVector(env, *settings, agents, autoreset_mode)
    for kind, wrapper in _WRAPPERS:
        if isinstance(env, kind):
            if agents is not None or autoreset_mode is not None:
                raise TypeError(
                    f"agents and autoreset_mode are for vector environments, got agents={agents!r} and "
                    f"autoreset_mode={autoreset_mode!r} for {env!r}"
                )
            return wrapper(env, *settings)
    raise TypeError(
        f"env must be a PettingZoo AECEnv or ParallelEnv, or a Gymnasium Env or VectorEnv, "
        f"got {env!r} ({type(env).__name__})"
    )


_WRAPPERS: tuple[tuple[type[Any], type[Any]], ...] = (
    (AECEnv, PolicyMapAEC),
    (ParallelEnv, PolicyMapParallel),
    (gymnasium.Env, PolicyMapEnv),
)


Env = TypeVar("Env")


@dataclass(frozen=True)
class EnvFn(Generic[Env]):
    """Makes and wraps one environment of many when called; it can be sent to a worker where `make` can."""

    make: Callable[[], Env]
    mapping: PolicyMapping
    resample_every: int
    warmup_episodes: int
    seed: int | Sequence[int] | None
    env_index: int
    info_key: str

    def __call__(self) -> Any:
        """Returns a new environment, wrapped.

        Raises:
            TypeError: If `make` makes a vector environment, whose rows would share indices with the next one's.
        """
        settings = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "make"}
        env = self.make()
        if isinstance(env, VectorEnv):
            raise TypeError(f"make must make a single environment, got {env!r}; wrap a vector environment itself")
        return wrap(env, **settings)  # type: ignore[call-overload]


def env_fns(
    make: Callable[[], Any],
    num_envs: int,
    mapping: MappingLike,
    *,
    resample_every: int = 10,
    warmup_episodes: int = 0,
    seed: int | Sequence[int] | None = None,
    env_index: int = 0,
    info_key: str = "policy_id",
) -> list[EnvFn[Any]]:
    """Returns callables that make wrapped environments, each knowing which one it is, for any vectoriser.

    Args:
        make: Makes one bare environment.
        num_envs: How many callables, from 1.
        mapping: As in `wrap`.
        resample_every: As in `wrap`.
        warmup_episodes: As in `wrap`.
        seed: As in `wrap`: with it, environment i plays the same wherever it is made.
        env_index: The index of the first environment, from 0: worker w of many starts at `w * num_envs`.
        info_key: As in `wrap`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a number is out of range, if the mapping needs a `seed`, or if it spans fewer environments. What
            depends on the agents is known when a callable is called.

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
    count, first = integer("num_envs", num_envs, 1), integer("env_index", env_index, 0)
    rule = as_mapping(mapping)
    text("info_key", info_key)
    seed = None if seed is None else seed_of("seed", seed)  # taken now: a generator has it once, a list may change
    # What the last environment would refuse is refused here, before any worker starts.
    cadence = {"resample_every": resample_every, "warmup_episodes": warmup_episodes}
    PolicyAssigner(rule, None, seed=seed, env_index=first + count - 1, **cadence)
    return [EnvFn(make, rule, resample_every, warmup_episodes, seed, first + i, info_key) for i in range(count)]
