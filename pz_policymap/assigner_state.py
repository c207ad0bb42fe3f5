"""The saved state of a `PolicyAssigner`: its layout, and the checks of a state before it is loaded."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import MAX_INDEX, equal, seed_of
from pz_policymap.assignment import Drawn, as_drawn, with_weights
from pz_policymap.cadence import Cadence
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.representation import saved_text
from pz_policymap.randomness.philox import Seed, Source

STATE_VERSION = 1
NEVER = 2**63 - 1
LAST = 2**62  # the largest counter, so that a sum of two does not overflow


class AssignerState(NamedTuple):
    """The parts of an assigner that change.

    Attributes:
        source: The random source, or None before the first episode.
        episode: The latest episode of each environment that need not be repeated, shape `(num_envs,)`; -1 for none.
        draw_episode: The episode of the draw in force, shape `(num_envs,)`; -1 for none.
        redraw_from: The episode at which a draw was requested, shape `(num_envs,)`; `NEVER` for none.
        drawn: The assignments in force.
    """

    source: Source | None
    episode: NDArray[np.int64]
    draw_episode: NDArray[np.int64]
    redraw_from: NDArray[np.int64]
    drawn: Drawn


def settings_of(
    mapping: PolicyMapping, cadence: Cadence, num_envs: int, env_index: int, agents: tuple[Any, ...] | None
) -> dict[str, Any]:
    """Returns the entries of a state that must be those of the assigner that loads it."""
    return {
        "version": STATE_VERSION,
        "mapping": saved_text(mapping),
        "resample_every": cadence.resample_every,
        "warmup_episodes": cadence.warmup_episodes,
        "num_envs": num_envs,
        "env_index": env_index,
        "agents": None if agents is None else list(agents),
    }


def saved_state(state: AssignerState, settings: dict[str, Any]) -> dict[str, Any]:
    """Returns a state as plain types for one environment, with arrays for several.

    Args:
        state: The state.
        settings: What `settings_of` returned.
    """

    def plain(values: NDArray[Any]) -> Any:
        return values[0].tolist() if len(values) == 1 else values.copy()

    return {
        **settings,
        "seed": None if state.source is None else state.source.seed,
        "episode": plain(state.episode),
        "redraw": plain(np.where(state.redraw_from == NEVER, -1, state.redraw_from)),
        "draw": {
            "episode": plain(state.draw_episode),
            "agents": list(state.drawn.agents),
            "policies": plain(state.drawn.policy_ids),
            "weights": [np.asarray(weights).tolist() for weights in state.drawn.weights],
            "mapping": state.drawn.name,
        },
    }


def checked_state(state: Any, settings: dict[str, Any], mapping: PolicyMapping, seed: Seed | None) -> AssignerState:
    """Returns the parts of a state from any origin, or raises a ValueError that says what does not fit.

    Args:
        state: What `saved_state` returned.
        settings: The settings of the assigner that loads it.
        mapping: Its mapping.
        seed: Its pinned seed, or None.
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"state must be a dict, got {type(state).__name__}")
    for name, mine in settings.items():
        theirs = _entry(state, name)
        if not equal(theirs, mine):
            raise ValueError(f"state does not fit: it has {name}={theirs!r}, this assigner {mine!r}")
    source = _source(state, seed)
    draw = _entry(state, "draw")
    agents, fixed_agents = tuple(_list(draw, "agents")), settings["agents"]
    if fixed_agents is not None and list(agents[: len(fixed_agents)]) != fixed_agents:
        raise ValueError(f"state does not fit: it has agents {list(agents)}, this assigner {fixed_agents}")
    num_envs: int = settings["num_envs"]
    episode, redraw = _numbers(state, "episode", (num_envs,)), _numbers(state, "redraw", (num_envs,))
    draw_episode = _numbers(draw, "episode", (num_envs,))
    policy_ids = _numbers(draw, "policies", (num_envs, len(agents)), MAX_INDEX).astype(np.int32)
    weights, drawn_by = _list(draw, "weights"), _entry(draw, "mapping")
    if not isinstance(drawn_by, str):
        raise ValueError(f"state does not fit: 'mapping' of the draw must be a string, got {drawn_by!r}")
    is_current = num_envs == 1 and drawn_by == saved_text(mapping)  # of several, some may hold an earlier draw
    size = mapping.num_policies if is_current else None
    _check_drawn(agents, policy_ids[draw_episode >= 0], MAX_INDEX if size is None else size - 1)
    bound = mapping  # a draw of an earlier mapping is known by its text only; late agents then follow this one
    may_join = num_envs == 1 and draw_episode[0] >= 0 and not mapping.needs_all_seats
    if may_join and drawn_by == saved_text(mapping):
        bound = _bound(mapping, weights)
    drawn = as_drawn(agents, policy_ids, drawn_by, bound, weights)
    return AssignerState(source, episode, draw_episode, np.where(redraw < 0, NEVER, redraw), drawn)


def _check_drawn(agents: tuple[Any, ...], policy_ids: NDArray[np.int32], last: int) -> None:
    """Raises an error if agents have two seats, or if a draw holds other policies than 0 to `last`."""
    if any(not isinstance(agent, Hashable) for agent in agents) or len(set(agents)) < len(agents):
        raise ValueError(f"state does not fit: agents must be distinct and hashable, got {list(agents)}")
    if policy_ids.size and not 0 <= policy_ids.min() <= policy_ids.max() <= last:
        raise ValueError(f"state does not fit: drawn policies must be from 0 to {last}, got {policy_ids.tolist()}")


def _source(state: Mapping[str, Any], pinned: Seed | None) -> Source | None:
    """Returns the random source of a state, or raises if its seed is not valid or not the pinned one."""
    seed = _entry(state, "seed")
    try:
        source = None if seed is None else Source(seed_of("seed", seed))
    except (TypeError, ValueError) as error:
        raise ValueError(f"state does not fit: {error}") from error
    if pinned is not None and (source is None or source.seed != pinned):
        raise ValueError(f"state does not fit: it has seed={seed!r}, this assigner {pinned!r}")
    return source


def _bound(mapping: PolicyMapping, weights: list[Any]) -> PolicyMapping:
    """Returns the mapping of the latest draw with its weights, or raises if they do not fit it."""
    try:
        return with_weights(mapping, weights)
    except Exception as error:
        raise ValueError(f"state does not fit: {mapping!r} does not accept its weights: {error!r}") from error


def _entry(state: Any, name: str) -> Any:
    """Returns one entry of a state from any origin."""
    if not isinstance(state, Mapping) or name not in state:
        raise ValueError(f"state does not fit: it has no {name!r}")
    return state[name]


def _list(state: Any, name: str) -> list[Any]:
    """Returns one entry as a fresh list."""
    value = _entry(state, name)
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"state does not fit: {name!r} must be a list, got {value!r}")
    return list(value)


def _numbers(state: Any, name: str, shape: tuple[int, ...], last: int = LAST) -> NDArray[np.int64]:
    """Returns one entry as a fresh array of that shape; a single environment may lack the first axis."""
    value = _entry(state, name)
    try:
        array = np.array(value).reshape(shape)
    except ValueError as error:
        raise ValueError(f"state does not fit: {name!r} must have shape {shape}, got {value!r}") from error
    if array.size and (array.dtype.kind not in "iu" or array.min() < -1 or array.max() > last):
        raise ValueError(f"state does not fit: {name!r} must be integers from -1 to {last}, got {value!r}")
    return array.astype(np.int64)
