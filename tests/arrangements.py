"""Real environments from their registries, and stacks of wrappers around a policy wrapper."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from typing import Any

import pettingzoo
from mpe2.all_modules import mpe_environments
from pettingzoo.test import example_envs
from pettingzoo.utils.conversions import aec_to_parallel, parallel_to_aec, turn_based_aec_to_parallel
from supersuit import agent_indicator_v0, black_death_v3, frame_skip_v0, frame_stack_v1, pad_observations_v0

Make = Callable[..., Any]
Wrap = Callable[[Any], Any]

FAMILIES = ("butterfly", "classic", "sisl")  # of PettingZoo; atari needs ROMs and a compiler

EPISODE = 6  # cycles, in environments with a setting for it

# Smaller boards and fewer agents where the default is slow. The environments themselves come from the registries.
CHEAP: dict[str, dict[str, Any]] = {
    "butterfly/pistonball": {"n_pistons": 4},
    "classic/go": {"board_size": 5},
    "sisl/pursuit": {"x_size": 8, "y_size": 8, "n_pursuers": 3, "n_evaders": 3},
}


@dataclass(frozen=True)
class Environment:
    """One environment of a registry, with its makers by API ("aec" or "parallel")."""

    name: str
    makers: dict[str, Make] = field(compare=False)

    def make(self, api: str, **settings: Any) -> Any:
        cheap = next((kwargs for name, kwargs in CHEAP.items() if self.name.startswith(name)), {})
        return self.makers[api](**cheap, **settings)

    @cache  # noqa: B019  # one object per environment
    def short(self, api: str) -> dict[str, int]:
        """Returns the settings for short episodes; empty if the environment offers none."""
        try:
            self.make(api, max_cycles=EPISODE).close()
        except TypeError:
            return {}
        return {"max_cycles": EPISODE}


def _of_module(name: str, module: Any) -> Environment:
    makers = {"aec": getattr(module, "env", None), "parallel": getattr(module, "parallel_env", None)}
    return Environment(name, {api: maker for api, maker in makers.items() if maker is not None})


def _of_pettingzoo() -> Iterator[Environment]:
    registries = {api: getattr(pettingzoo, f"{api}_registry", None) for api in ("aec", "parallel")}
    if registries["aec"] is None:  # PettingZoo before 1.27 has modules only
        yield from _of_families()
        return
    for name in dict.fromkeys(name for registry in registries.values() for name in registry):
        if name.split("/")[0] in FAMILIES:
            makers = {api: partial(pettingzoo.make, api, name) for api in registries if name in registries[api]}
            yield Environment(name, makers)


def _of_families() -> Iterator[Environment]:
    for family in FAMILIES:
        for info in pkgutil.iter_modules(import_module(f"pettingzoo.{family}").__path__):
            if re.search(r"_v\d+$", info.name):
                try:
                    yield _of_module(f"{family}/{info.name}", import_module(f"pettingzoo.{family}.{info.name}"))
                except ImportError as error:
                    yield Environment(f"{family}/{info.name}", dict.fromkeys(("aec", "parallel"), _raiser(error)))


def _raiser(error: Exception) -> Make:
    """Returns a maker that skips the test of an environment that cannot be imported here."""

    def make(**settings: Any) -> Any:
        raise error

    return make


def _of_examples() -> Iterator[Environment]:
    for info in pkgutil.iter_modules(example_envs.__path__):
        yield _of_module(f"example/{info.name}", import_module(f"{example_envs.__name__}.{info.name}"))


ENVIRONMENTS = [
    *_of_pettingzoo(),
    *(_of_module(name, module) for name, module in mpe_environments.items()),
    *_of_examples(),
]


@dataclass(frozen=True)
class Arrangement:
    """A stack of wrappers with a place for the policy wrapper.

    Args:
        name: Where the policy wrapper stands.
        stacks: By API of the result: the API of the environment at the bottom, and a function of that environment and
            of what wraps policies.
        invents: The APIs in which a wrapper outside makes infos of its own, without a tag or with another agent's.
    """

    name: str
    stacks: dict[str, tuple[str, Callable[[Any, Wrap], Any]]] = field(compare=False)
    invents: tuple[str, ...] = ()

    def build(self, environment: Environment, api: str, policy: Wrap, **settings: Any) -> Any:
        source, stack = self.stacks[api]
        return stack(environment.make(source, **(settings or environment.short(source))), policy)


def _inside(name: str, wrapper: Wrap, invents: tuple[str, ...] = ()) -> Arrangement:
    stacks = {api: (api, lambda env, policy: wrapper(policy(env))) for api in ("aec", "parallel")}
    return Arrangement(f"inside {name}", stacks, invents)


def _around(name: str, wrapper: Wrap) -> Arrangement:
    stacks = {api: (api, lambda env, policy: policy(wrapper(env))) for api in ("aec", "parallel")}
    return Arrangement(f"around {name}", stacks)


SUPERSUIT: dict[str, Wrap] = {
    "frame_skip": partial(frame_skip_v0, num_frames=2),
    "frame_stack": partial(frame_stack_v1, stack_size=2),
    "pad_observations": pad_observations_v0,
    "black_death": black_death_v3,
    "agent_indicator": lambda env: agent_indicator_v0(pad_observations_v0(env)),
}
INVENTS: dict[str, tuple[str, ...]] = {"frame_skip": ("aec",), "black_death": ("aec", "parallel")}

ARRANGEMENTS = [
    Arrangement("alone", {api: (api, lambda env, policy: policy(env)) for api in ("aec", "parallel")}),
    Arrangement(
        "inside the converter",
        {
            "aec": ("parallel", lambda env, policy: parallel_to_aec(policy(env))),
            "parallel": ("aec", lambda env, policy: aec_to_parallel(policy(env))),
        },
    ),
    Arrangement(
        "around the converter",
        {
            "aec": ("parallel", lambda env, policy: policy(parallel_to_aec(env))),
            "parallel": ("aec", lambda env, policy: policy(aec_to_parallel(env))),
        },
    ),
    Arrangement(
        "inside the turn-based converter",
        {"parallel": ("aec", lambda env, policy: turn_based_aec_to_parallel(policy(env)))},
    ),
    Arrangement(
        "around the turn-based converter",
        {"parallel": ("aec", lambda env, policy: policy(turn_based_aec_to_parallel(env)))},
    ),
    *(_inside(name, wrapper, INVENTS.get(name, ())) for name, wrapper in SUPERSUIT.items()),
    *(_around(name, wrapper) for name, wrapper in SUPERSUIT.items()),
]


def cases(*apis: str) -> list[tuple[Environment, Arrangement, str]]:
    """Returns every environment in every arrangement that its makers allow, as these APIs."""
    return [
        (environment, arrangement, api)
        for environment in ENVIRONMENTS
        for arrangement in ARRANGEMENTS
        for api in apis
        if api in arrangement.stacks and arrangement.stacks[api][0] in environment.makers
    ]
