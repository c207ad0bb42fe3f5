"""`act`: dispatches PettingZoo's dicts of observations to policies, one batch per policy."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeVar

from pz_policymap.arguments import integer
from pz_policymap.batching.nested_arrays import layout, stacked, unstacked
from pz_policymap.batching.policy_groups import Policies, Policy, checked_batch, entries_of

AgentID = TypeVar("AgentID", bound=Hashable)


def act(
    policies: Policies,
    observations: Mapping[AgentID, Any],
    infos: Mapping[AgentID, Mapping[str, Any]],
    agents: Iterable[AgentID] | None = None,
    info_key: str = "policy_id",
) -> dict[AgentID, Any]:
    """Returns the actions of all agents, computed by the policies named in their infos.

    The observations of agents that share a policy are stacked into one call, if they have the same structure, shapes
    and dtypes. Otherwise the policy is called once per agent, with a batch of one.

    A policy is called as `policy(observations)`, with a batch whose arrays have one row per agent. If its signature
    (that of `forward` for a torch module) has one of these parameters, it is passed as well:

    - `infos`: the list of the agents' infos, in the order of the rows.
    - `action_mask`: the agents' masks, stacked, from `info["action_mask"]` or else from
      `observation["action_mask"]`; None if there are none.

    Args:
        policies: The policies by policy id, a sequence or a dict.
        observations: As returned by the environment.
        infos: As returned by the environment, tagged with policy ids. An agent whose policy id is -1 does not act.
        agents: The agents that act, usually `env.agents`, since observations include agents that have just ended.
            None: all agents with an observation.
        info_key: Key of the tag in each info.

    Returns:
        The action of each agent, in the order of `agents`.

    Raises:
        KeyError: If a policy is missing, or an agent's observation, info or policy is; no policy has been called then.
        ValueError: If a policy does not return one row per agent.

    Example:
        >>> import numpy as np
        >>> from pz_policymap import act
        >>> def first(observations):
        ...     return np.zeros(len(observations), int)
        >>> def best_allowed(observations, action_mask):
        ...     return np.argmax(observations * action_mask, axis=1)
        >>> observations = {agent: np.array([3.0, 2.0, 1.0]) for agent in ("red", "blue", "green")}
        >>> infos = {agent: {"policy_id": 1, "action_mask": np.array([0, 1, 1])} for agent in observations}
        >>> infos["blue"]["policy_id"] = 0
        >>> {agent: int(action) for agent, action in act([first, best_allowed], observations, infos).items()}
        {'red': 1, 'blue': 0, 'green': 1}
    """
    for name, given in (("observations", observations), ("infos", infos)):
        if not isinstance(given, Mapping):
            raise TypeError(
                f"{name} must be a dict by agent, got {type(given).__name__}; for a batch use "
                f"PolicyGroups(policy_ids).act(policies, observations)"
            )
    acting = list(observations if agents is None else agents)
    served: dict[int, list[AgentID]] = {}
    for agent in acting:
        policy = _policy_of(agent, observations, infos, info_key)
        if policy >= 0:
            served.setdefault(policy, []).append(agent)
    called = entries_of(policies, sorted(served), "policies")
    actions: dict[AgentID, Any] = {}
    for policy, those in sorted(served.items()):
        wanted = _parameters(called[policy])
        views = {agent: _view(observations[agent], infos[agent], wanted) for agent in those}
        alike = len(those) == 1 or len({layout(view) for view in views.values()}) == 1
        for together in [those] if alike else [[agent] for agent in those]:
            inputs = stacked([views[agent] for agent in together])
            if "infos" in wanted:
                inputs["infos"] = [infos[agent] for agent in together]
            if "action_mask" in wanted:
                inputs.setdefault("action_mask", None)
            answer = called[policy](inputs.pop("observations"), **inputs)
            rows = unstacked(checked_batch(policy, answer, len(together)), len(together))
            actions.update(zip(together, rows, strict=True))
    return {agent: actions[agent] for agent in acting if agent in actions}


def mask_of(observation: Any, info: Mapping[str, Any]) -> Any:
    """Returns the action mask that an info or an observation holds, or None."""
    nested = observation if isinstance(observation, Mapping) else {}
    return info.get("action_mask", nested.get("action_mask"))


def _policy_of(agent: Any, observations: Mapping[Any, Any], infos: Mapping[Any, Any], info_key: str) -> int:
    """Returns the policy id in an agent's info, or raises if observation, info or tag is missing."""
    for name, given in (("observations", observations), ("infos", infos)):
        if agent not in given:
            raise KeyError(f"{name} must hold every agent that acts, got none for {agent!r} in {list(given)}")
    if info_key not in infos[agent]:
        raise KeyError(f"infos[{agent!r}] must have the key {info_key!r}, got {dict(infos[agent])}")
    return integer(f"infos[{agent!r}][{info_key!r}]", infos[agent][info_key], minimum=-1)


def _view(observation: Any, info: Mapping[str, Any], wanted: frozenset[str]) -> dict[str, Any]:
    """Returns the inputs of a policy for one agent that are stacked with those of other agents."""
    mask = mask_of(observation, info) if "action_mask" in wanted else None
    return {"observations": observation} if mask is None else {"observations": observation, "action_mask": mask}


def _parameters(policy: Policy) -> frozenset[str]:
    """Returns the names of a policy's parameters; for a torch module, those of `forward`."""
    try:
        return frozenset(inspect.signature(getattr(policy, "forward", policy)).parameters)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return frozenset()
