"""`SeatPolicies`: the policies that control the agents of one environment.

Throughout this package, a policy is one of these:

- a callable `policy(observation, agent, info) -> action`. If its signature has a parameter `rng`, it is also given a
  `numpy.random.Generator` seeded for its seat and episode. If it has a method `reset()`, that is called when an episode
  begins, once for every seat it controls;
- an object with `predict(observation, ...) -> (actions, state)`, as in Stable-Baselines3, with `reset()` likewise;
- the string "random".

A torch module takes batches, without agents, so adapt it in one line:
`lambda observation, agent, info: module(torch.as_tensor(observation)).argmax().item()`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pz_policymap.policies.predict import Ask, Predictor, predicted_actions
from pz_policymap.policies.random_policy import RandomPolicy

Policies = Mapping[int, Any] | Sequence[Any]
SeatPolicy = Callable[[Any, Any, Any], Any]

RANDOM = "random"
EXPECTED = (
    "a callable (observation, agent, info) -> action, an object with predict(observation) -> (actions, state), "
    'or "random"'
)


class SeatPolicies:
    """Computes the actions of agents by the policies of their episode.

    Args:
        policies: The policies by policy id, a dict or a sequence.
        action_space: Returns the action space of an agent, for "random".

    Attributes:
        asked: The agents whose policies the last `act_together` called, in that order, one per batch; after `join`,
            its agent. After an error, the last one is an agent whose policy raised it.

    Raises:
        TypeError: If `policies` is neither a dict nor a sequence, or if one of them is not a policy.

    Example:
        >>> def first(observation, agent, info):
        ...     return 0
        >>> seats = SeatPolicies([first, "random"], lambda agent: None)
        >>> seats.begin({"red": 0}, seed=7)
        >>> seats.act("red", None, {})
        0
    """

    def __init__(self, policies: Policies, action_space: Callable[[Any], Any]) -> None:
        self._action_space = action_space
        self._by_agent: dict[Any, SeatPolicy | Predictor] = {}
        self._assignment: Mapping[Any, int] = {}
        self.asked: list[Any] = []
        self._seed: tuple[int, ...] = (0,)
        self.replace(policies)
        self._policies = self._next  # of the running episode

    def replace(self, policies: Policies) -> None:
        """Uses other policies from the next episode on; arguments and errors as in the constructor."""
        if not isinstance(policies, (Mapping, Sequence)) or isinstance(policies, (str, bytes)):
            raise TypeError(f"policies must be a dict from policy id to policy, or a sequence, got {policies!r}")
        self._next = _Given(policies)

    def holds(self, policy_id: int) -> bool:
        """Returns whether the next episode has a policy with this id."""
        return self._next.holds(policy_id)

    def begin(self, assignment: Mapping[Any, int], seed: int | Sequence[int]) -> None:
        """Begins an episode: every agent of the assignment gets its policy, and stateful policies are reset.

        Args:
            assignment: Agent -> policy id, in seat order.
            seed: Seeds the generators of policies that take `rng`, together with the seat. Non-negative.

        Raises:
            KeyError: If a policy is missing.
        """
        self._seed = (seed,) if isinstance(seed, int) else tuple(seed)
        self._assignment, self._by_agent = assignment, {}
        self._policies = self._next
        self._begun = set[int]()  # policies with `predict` that control an agent in this episode
        for agent, policy_id in assignment.items():
            self.join(agent, policy_id)

    def join(self, agent: Hashable, policy_id: int) -> None:
        """Gives an agent, such as one that joins mid-episode, its policy; errors as in `begin`."""
        self.asked = [agent]
        policy, wants_rng = self._policies.lookup(policy_id)
        held = policy.policy if isinstance(policy, Predictor) else policy
        if isinstance(policy, Predictor) and policy_id not in self._begun:
            policy.begin()
            self._begun.add(policy_id)
        if isinstance(policy, str):  # "random"
            policy = RandomPolicy(self._action_space)
        elif callable(reset := getattr(held, "reset", None)):
            reset()
        if wants_rng:
            words = np.random.SeedSequence([*self._seed, len(self._by_agent)])
            policy = partial(policy, rng=np.random.Generator(np.random.PCG64(words)))
        self._by_agent[agent] = policy

    def policy_of(self, agent: Any) -> SeatPolicy | Predictor:
        """Returns the policy of an agent in the form that `actions_of` takes."""
        return self._by_agent[agent]

    def act(self, agent: Any, observation: Any, info: Mapping[str, Any]) -> Any:
        """Returns the action of one agent, which must have been given a policy by `begin` or `join`."""
        return actions_of([(self._by_agent[agent], agent, observation, info)])[0]

    def act_together(self, observations: Mapping[Any, Any], infos: Mapping[Any, Mapping[str, Any]]) -> dict[Any, Any]:
        """Returns the actions of agents that move at once; agents that share a `predict` policy are one batch.

        Args:
            observations: The observations of the agents that act.
            infos: Their infos.
        """
        asks = [(self._by_agent[agent], agent, seen, infos[agent]) for agent, seen in observations.items()]
        self.asked = []
        return dict(zip(observations, actions_of(asks, self.asked), strict=True))


class _Given:
    """The policies that a user gave, checked when they are first looked up."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        self._known: dict[int, tuple[Any, Any, bool]] = {}  # as given, as called, whether it takes `rng`
        for policy_id in self._ids():
            if self.holds(policy_id):  # the learner's place in a sequence may be empty
                self.lookup(policy_id)

    def holds(self, policy_id: int) -> bool:
        """Returns whether a policy with this id is given."""
        return policy_id in self._ids() and self._policies[policy_id] is not None

    def lookup(self, policy_id: int) -> tuple[Any, bool]:
        """Returns a policy as it is called, and whether it takes `rng`; the user's dict may have changed."""
        if policy_id not in self._ids():
            raise KeyError(
                f"policies must hold every policy that acts, got none for policy {policy_id} in {[*self._ids()]}"
            )
        given = self._policies[policy_id]
        known = self._known.get(policy_id)
        if known is None or known[0] is not given:
            policy = _checked(policy_id, given)
            known = self._known[policy_id] = given, policy, _takes_rng(policy)
        return known[1], known[2]

    def _ids(self) -> Collection[int]:
        return self._policies if isinstance(self._policies, Mapping) else range(len(self._policies))


def actions_of(asks: Sequence[Ask], asked: list[Any] | None = None) -> list[Any]:
    """Returns the actions of agents, of one environment or of several; those that share a `predict` are one batch.

    Args:
        asks: Each with a policy from `SeatPolicies.policy_of`.
        asked: Receives the agent of each call before the call, or the first agent of a batch; None: not needed.
    """
    asked = [] if asked is None else asked
    actions: list[Any] = []
    batches: dict[int, list[int]] = {}
    for place, (policy, agent, observation, info) in enumerate(asks):
        if policy.__class__ is Predictor:
            batches.setdefault(id(policy.policy), []).append(place)
            actions.append(None)
        else:
            asked.append(agent)
            actions.append(policy(observation, agent, info))
    for places in batches.values():
        asked.append(asks[places[0]][1])
        for place, action in zip(places, predicted_actions([asks[place] for place in places]), strict=True):
            actions[place] = action
    return actions


def _checked(policy_id: Any, policy: Any) -> Any:
    """Returns a policy in the form that `SeatPolicies` calls, or raises a TypeError."""
    name = f"policies[{policy_id!r}]"
    if callable(getattr(policy, "predict", None)):
        return Predictor(policy, policy_id)
    if isinstance(policy, str) and policy == RANDOM:
        return policy
    if not callable(policy) or isinstance(policy, type):
        raise TypeError(f"{name} must be {EXPECTED}, got {policy!r}")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(policy, torch.nn.Module):
        raise TypeError(
            f"{name} is a torch module, which takes batches; adapt it to one agent: "
            f"lambda observation, agent, info: module(torch.as_tensor(observation)).argmax().item()"
        )
    try:
        inspect.signature(policy).bind(None, None, None, **({"rng": None} if _takes_rng(policy) else {}))
    except TypeError as error:
        raise TypeError(f"{name} must be {EXPECTED}, got {policy!r}: {error}") from error
    except ValueError:
        pass  # some callables written in C have no signature
    return policy


def _takes_rng(policy: Any) -> bool:
    """Returns whether a policy takes a generator."""
    if isinstance(policy, Predictor):
        return False
    try:
        return isinstance(policy, str) or "rng" in inspect.signature(policy).parameters
    except (TypeError, ValueError):
        return False
