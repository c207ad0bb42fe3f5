"""`PolicyMapping`: the rule that makes a draw, and what a rule tells about itself."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.randomness.draw import Draw

PolicyIds = NDArray[np.integer[Any]]
WeightsFunction = Callable[[], Any]
Ask = Callable[[WeightsFunction], Any]


class PolicyMapping(ABC):
    """Decides which policy plays which seat: one method, the same for one environment and for a million.

    A mapping is a value: it holds settings and nothing that changes, so a draw is a function of what is in `draw`.
    Subclass it for a rule of your own, or hand `wrap` a plain function (`FromFunction`). Its public attributes are its
    settings, by which a saved state knows it again; what begins with an underscore is not looked at.

    Example:
        >>> import numpy as np
        >>> from pz_policymap import Draw, PolicyMapping
        >>> class EvenSeats(PolicyMapping):
        ...     "Policy 0 in the even seats, a random opponent in the odd ones."
        ...     num_policies = 4
        ...     def assign(self, draw):
        ...         even = np.arange(draw.num_seats) % 2 == 0
        ...         return np.where(even, 0, 1 + draw.integers(3))
        >>> EvenSeats().assign(Draw.at(0, ["a", "b", "c"], env_index=[0], episode=[0])).shape
        (1, 3)
    """

    @abstractmethod
    def assign(self, draw: Draw) -> PolicyIds:
        """Returns the policy of every seat, an integer array of shape `(draw.num_envs, draw.num_seats)`.

        It must be a function of `draw` alone, row by row: what one environment plays does not depend on which others
        are drawn in the same call.
        """

    @property
    def num_policies(self) -> int | None:
        """The size of the population where the mapping declares it, else None; no index may reach it."""
        return None

    @property
    def num_envs(self) -> int | None:
        """How many environments the mapping spans, or None for any number; no env index may reach it."""
        return min((n for child in self.children if (n := child.num_envs) is not None), default=None)

    @property
    def children(self) -> tuple[PolicyMapping, ...]:
        """The mappings nested in this one."""
        return ()

    @property
    def needs_env_index(self) -> bool:
        """Whether the rule means something only if every environment knows which one it is."""
        return any(child.needs_env_index for child in self.children)

    @property
    def needs_seed(self) -> bool:
        """Whether all environments must share one pinned seed."""
        return any(child.needs_seed for child in self.children)

    @property
    def needs_all_seats(self) -> bool:
        """Whether agents that come late change the policies of those that are there."""
        return any(child.needs_all_seats for child in self.children)

    @property
    def reads_agents(self) -> bool:
        """Whether the rule looks at who sits where, and not only at how many there are."""
        return True

    @property
    def needs_focal(self) -> bool:
        """Whether the rule must know the focal policy, which it does in the background of `Focal`."""
        return any(child.needs_focal for child in self.children)

    @property
    def counts_blocks(self) -> bool:
        """Whether the blocks are a schedule, which blocks of one episode at the start would cut short."""
        return any(child.counts_blocks for child in self.children)

    def check(self, agents: tuple[Hashable, ...]) -> None:
        """Raises an error if the mapping cannot serve these agents, given in seat order."""
        for child in self.children:
            child.check(agents)

    def bind(self, ask: Ask) -> PolicyMapping:
        """Returns this mapping with every weights callable replaced by `ask(callable)`, in a fixed order.

        The assigner binds once a draw, so that weights which change meanwhile touch no assignment in force. A mapping
        that nests others with weights callables must bind them itself.

        Raises:
            TypeError: If it does not.
        """
        if any(child.bind(ask) is not child for child in self.children):
            raise TypeError(f"{type(self).__name__} must define bind, for a mapping in it asks a callable for weights")
        return self

    @property
    def fingerprint(self) -> str:
        """What tells this mapping from another in a saved state: its settings, functions and other objects by name."""
        text = describe(self)
        if len(text) <= 300:
            return text
        return f"{text[:200]}... sha256:{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def describe(value: Any) -> str:
    """Returns a text for a setting that is the same in every process.

    Different settings have different texts, as far as they can be told apart: a function is known by its name alone,
    and any other object by that of its class.

    Example:
        >>> from pz_policymap import Shared, Uniform
        >>> describe(Shared(Uniform(2)))
        'Shared(mapping=Uniform(policies=2, mix=True, replace=True))'
    """
    if isinstance(value, PolicyMapping):
        settings = getattr(value, "__dataclass_fields__", {})
        names = [n for n, f in settings.items() if f.init]
        names += [n for n in vars(value) if n not in settings and not n.startswith("_") and not _is_cached(value, n)]
        pairs = ", ".join(f"{name}={describe(getattr(value, name))}" for name in names)
        return f"{type(value).__name__}({pairs})"
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{describe(k)}: {describe(v)}" for k, v in value.items())) + "}"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(describe, value)) + ")"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(describe, value))) + "}"
    return _describe_leaf(value)


def _is_cached(value: PolicyMapping, name: str) -> bool:
    """Whether an attribute is no setting, but computed from the others when first read."""
    return isinstance(getattr(type(value), name, None), cached_property)


def _describe_leaf(value: Any) -> str:
    """Returns the text of a setting that holds no others."""
    if isinstance(value, np.ndarray):
        return f"array{value.tolist()}"
    if isinstance(value, np.generic):
        return repr(value.item())  # NumPy's own text differs by version
    if callable(value):
        return f"<function {getattr(value, '__name__', type(value).__name__)}>"
    text: Any = type(value).__repr__
    return f"<{type(value).__name__}>" if text is object.__repr__ else repr(value)  # object's own shows an address
