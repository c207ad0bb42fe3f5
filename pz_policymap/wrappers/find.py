"""Finds the policy wrapper, its assigner and the key of its tags in a stack of wrappers and converters."""

from __future__ import annotations

from typing import Any

from pz_policymap.arguments import text
from pz_policymap.assigner import PolicyAssigner
from pz_policymap.wrappers.policy_wrapper import DEFAULT_KEY

INNER = ("env", "aec_env", "par_env", "venv")  # where wrappers and converters keep what they wrap
SEVERAL = ("envs", "vec_envs")  # where vectorizers keep several


def find_assigner(env: Any) -> PolicyAssigner:
    """Returns the assigner of the outermost policy wrapper in a stack of wrappers and converters.

    PettingZoo's converters do not forward attributes such as `env.policy_ids`. This function looks inside them. To save
    a checkpoint, use the policy wrapper itself: an assigner does not see whether an episode is unfinished.

    Args:
        env: An environment, wrapped and converted in any way.

    Raises:
        ValueError: If no policy wrapper is found, or if a vectorizer holds several environments, each with its own.

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


def key_of_tags(env: Any, info_key: str | None = None) -> str:
    """Returns the key of the tags in the infos of an environment.

    Args:
        env: An environment, wrapped, converted and vectorized in any way.
        info_key: The key. None: that of the policy wrapper inside, or "policy_id" if none is found, as in an
            environment of other processes.

    Raises:
        TypeError: If `info_key` is not a string.
    """
    if info_key is not None:
        return text("info_key", info_key)
    try:
        wrapper = find_policy_wrapper(env, any_of_several=True)
    except ValueError:
        return DEFAULT_KEY
    key: str = getattr(wrapper, "info_key", DEFAULT_KEY)  # wrappers of others may hold an assigner, too
    return key


def find_policy_wrapper(env: Any, any_of_several: bool = False) -> Any:
    """Returns the outermost policy wrapper in a stack of wrappers and converters.

    Args:
        env: As in `find_assigner`, as are the errors.
        any_of_several: Whether to look into the first of several environments, instead of raising an error.
    """
    layer, seen = env, list[Any]()
    while layer is not None and not any(layer is other for other in seen):
        own = getattr(layer, "__dict__", {})  # not getattr: wrappers forward it, and some raise before reset
        if isinstance(own.get("assigner"), PolicyAssigner):
            return layer
        seen.append(layer)
        layer = next((own[name] for name in INNER if own.get(name) is not None), None)
        several = next((name for name in SEVERAL if isinstance(own.get(name), list) and own[name]), None)
        if layer is None and several is not None:
            if len(own[several]) > 1 and not any_of_several:
                raise ValueError(
                    f"env holds {len(own[several])} environments in {type(seen[-1]).__name__}.{several}, "
                    f"each with its own assigner: pass one of them"
                )
            layer = own[several][0]
    path = " -> ".join(type(other).__name__ for other in seen)
    raise ValueError(f"env has no policy wrapper around or inside it, looked through {path}")
