"""The agents whose seats are the rows of a vector environment."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from gymnasium.vector import VectorEnv

from pz_policymap.arguments import in_order, integer


def agents_of(env: VectorEnv[Any, Any, Any], agents: int | Sequence[Hashable] | None) -> Sequence[Hashable]:
    """Returns the agents of one environment in seat order; each has one row.

    Args:
        env: A vector environment.
        agents: A number of agents, >= 1, which are then called "agent_0", "agent_1", ..., or their names. None: the
            agents that the environment declares, as SuperSuit's vectors do, or else one.

    Raises:
        TypeError: If `agents` is neither an integer nor a sequence.
        ValueError: If the number of rows is not a multiple of it, if the environment has another number of agents, or
            if SuperSuit's processes hide them and none are given.

    Example:
        >>> import supersuit
        >>> from pettingzoo.classic import rps_v2
        >>> vector = supersuit.pettingzoo_env_to_vec_env_v1(rps_v2.parallel_env())
        >>> agents_of(supersuit.concat_vec_envs_v1(vector, num_vec_envs=3), None)
        ('player_0', 'player_1')
    """
    known = known_agents(env)
    names: Sequence[Hashable]
    if agents is None:
        if known is None and hasattr(env.unwrapped, "idx_starts"):  # SuperSuit's rows in processes are agents
            raise ValueError("agents must be given for environments in processes, which hide their agents, got None")
        names = known or ("agent_0",)
    elif isinstance(agents, Iterable) and not isinstance(agents, (str, bytes)):
        names = in_order("agents", agents)
    else:
        names = [f"agent_{seat}" for seat in range(integer("agents", agents, 1))]
    if not names or env.num_envs % len(names):
        raise ValueError(f"agents must divide the {env.num_envs} rows of the environment, got {len(names)} agents")
    if known is not None and len(names) != len(known):
        raise ValueError(
            f"agents must name the {len(known)} agents {list(known)} of each environment, got {len(names)}: {agents!r}"
        )
    return names


def check_named(agents: Sequence[Hashable], known: Iterable[Hashable]) -> None:
    """Raises a ValueError if some of these agents are not among those of the environment."""
    existing = list(known)
    unknown = [agent for agent in agents if agent not in existing]
    if unknown:
        raise ValueError(f"agents must name agents of the environment, {existing}, got {list(agents)}")


def known_agents(env: Any) -> tuple[Hashable, ...] | None:
    """Returns the `possible_agents` of a vector environment or of what it holds, or None without them.

    Raises:
        ValueError: If it holds environments with different numbers of agents.
    """
    agents = getattr(env, "possible_agents", None)
    if isinstance(agents, (list, tuple)) and agents:
        return tuple(agents)
    own = getattr(env, "__dict__", {})
    several = own.get("vec_envs")  # of SuperSuit's ConcatVecEnv
    if isinstance(several, list) and several:
        each = [known_agents(one) for one in several]
        if len({agents and len(agents) for agents in each}) > 1:
            raise ValueError(f"env must hold environments with the same number of agents, got {each}")
        return each[0]
    inner = next((own[name] for name in ("par_env", "env") if own.get(name) is not None), None)
    return None if inner is None else known_agents(inner)
