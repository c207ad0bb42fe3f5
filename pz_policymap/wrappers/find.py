"""`find_assigner`: finds the assigner in a stack of wrappers and converters."""

from __future__ import annotations

from typing import Any

from pz_policymap.assigner import PolicyAssigner

_INNER = ("env", "aec_env", "par_env", "venv")  # where wrappers and converters keep what they wrap
_SEVERAL = ("envs", "vec_envs")  # where vectorizers keep several


def find_assigner(env: Any) -> PolicyAssigner:
    """Returns the assigner of the outermost policy wrapper in a stack of wrappers and converters.

    PettingZoo's converters do not forward attributes such as `env.policy_ids`. This function looks inside them. To save
    a checkpoint, use the policy wrapper itself: an assigner does not see whether an episode is unfinished.

    Args:
        env: An environment, wrapped and converted in any way.

    Raises:
        ValueError: If there is no policy wrapper, or if a vectorizer holds several environments, each with its own.

    Example:
        >>> import pz_policymap as pm
        >>> from mpe2 import simple_spread_v3
        >>> from pettingzoo.utils import aec_to_parallel
        >>> env = aec_to_parallel(pm.wrap(simple_spread_v3.env(), 4, seed=0))
        >>> observations, infos = env.reset()
        >>> pm.find_assigner(env).assignment()
        {'agent_0': 0, 'agent_1': 2, 'agent_2': 2}
    """
    assigner: PolicyAssigner = find_policy_wrapper(env).assigner
    return assigner


def find_policy_wrapper(env: Any) -> Any:
    """Returns the outermost policy wrapper in a stack of wrappers and converters; arguments as in `find_assigner`."""
    layer, seen = env, list[Any]()
    while layer is not None and not any(layer is other for other in seen):
        own = getattr(layer, "__dict__", {})  # not getattr: wrappers forward it, and some raise before reset
        if isinstance(own.get("assigner"), PolicyAssigner):
            return layer
        seen.append(layer)
        layer = next((own[name] for name in _INNER if own.get(name) is not None), None)
        several = next((name for name in _SEVERAL if isinstance(own.get(name), list) and own[name]), None)
        if layer is None and several is not None:
            if len(own[several]) > 1:
                raise ValueError(
                    f"env holds {len(own[several])} environments in {type(seen[-1]).__name__}.{several}, "
                    f"each with an assigner of its own: ask for one of them"
                )
            layer = own[several][0]
    path = " -> ".join(type(other).__name__ for other in seen)
    raise ValueError(f"env has no policy wrapper around or inside it, looked through {path}")
