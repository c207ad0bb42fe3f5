"""Autoreset modes: how a vector environment resets the sub-environments whose episodes have ended."""

from __future__ import annotations

from enum import Enum
from typing import Any

from gymnasium import vector


class Autoreset(Enum):
    """Gymnasium's `AutoresetMode`, which does not exist in Gymnasium 1.0."""

    NEXT_STEP = "NextStep"
    SAME_STEP = "SameStep"
    DISABLED = "Disabled"


def declared_mode(env: Any, given: Any) -> Autoreset | None:
    """Returns the autoreset mode of a vector environment, or None if neither it nor the caller declares one.

    Args:
        env: A vector environment, which may declare `metadata["autoreset_mode"]`.
        given: A mode or its value, such as "SameStep". None: the declared one. The caller may always pass
            "Disabled"; any other mode must agree with the declared one.

    Raises:
        ValueError: If a mode is not one of Gymnasium's three, or if the two contradict each other.
    """
    declared = _mode("env.metadata['autoreset_mode']", (getattr(env, "metadata", None) or {}).get("autoreset_mode"))
    asked = _mode("autoreset_mode", given)
    if asked not in (None, declared, Autoreset.DISABLED) and declared is not None:
        raise ValueError(f"autoreset_mode must be {declared.value!r}, as the environment declares, got {given!r}")
    return asked or declared


def undeclared_mode(env: vector.VectorEnv[Any, Any, Any], infos: Any) -> Autoreset:
    """Returns the mode of an environment that declares none, judging by the infos of its first reset.

    SuperSuit's vector environments return their infos as a list and reset in the same step. Gymnasium 1.0 has only
    the next-step mode.

    Raises:
        ValueError: If the infos do not reveal the mode.
    """
    if isinstance(infos, list):
        return Autoreset.SAME_STEP
    if not hasattr(vector, "AutoresetMode"):
        return Autoreset.NEXT_STEP
    raise undeclared(env)


def undeclared(env: Any) -> ValueError:
    """Returns the error about an environment whose mode is unknown."""
    return ValueError(
        f"autoreset_mode must be given, for {env} does not declare it in its metadata: "
        f"one of {[mode.value for mode in Autoreset]}"
    )


def _mode(name: str, value: Any) -> Autoreset | None:
    if value is None:
        return None
    try:
        return Autoreset(getattr(value, "value", value))
    except ValueError:
        allowed = [mode.value for mode in Autoreset]
        raise ValueError(
            f"{name} must be a gymnasium.vector.AutoresetMode or one of {allowed}, got {value!r}"
        ) from None
