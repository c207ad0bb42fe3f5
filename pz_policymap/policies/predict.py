"""`Predictor`: adapts a policy with `predict`, as in Stable-Baselines3, to PettingZoo agents."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pz_policymap.batching.act import mask_of
from pz_policymap.batching.nested_arrays import layout, stacked, unstacked
from pz_policymap.batching.policy_groups import checked_batch
from pz_policymap.policies.action_masks import flattened, without_mask

Ask = tuple[Any, Any, Any, Mapping[str, Any]]
"""A request for an action: the policy, its agent, and the agent's observation and info."""


class Predictor:
    """A policy with `predict`, as in Stable-Baselines3, that controls agents of one environment.

    Args:
        policy: Its `predict` takes a batch of observations and returns actions and the next state.
        policy_id: Its policy id, for errors.

    Attributes:
        policy: As given.
        policy_id: As given.
        has_state: Whether `predict` returns a state; None before its first call.
        states: The latest state of each agent that has acted in this episode.
    """

    def __init__(self, policy: Any, policy_id: int = 0) -> None:
        self.policy = policy
        self.policy_id = policy_id
        try:
            parameters = inspect.signature(policy.predict).parameters.values()
        except ValueError:  # written in C
            parameters = {}.values()
        self._named = {parameter.name for parameter in parameters}
        self._anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        self.has_state: bool | None = None if self.takes("state") else False
        self.states: dict[Any, Any] = {}

    def takes(self, name: str) -> bool:
        """Returns whether `predict` has this parameter."""
        return self._anything or name in self._named

    def begin(self) -> None:
        """Begins an episode."""
        self.states = {}


def predicted_actions(asks: Sequence[Ask]) -> list[Any]:
    """Returns the actions of agents that one policy controls, in one or in several environments.

    Their observations are one batch if they can be stacked. A policy with a state is called for one agent at a time,
    because the layout of its states is unknown.

    Args:
        asks: Their policies are `Predictor`s of the same object.

    Raises:
        TypeError: If `predict` does not return actions and a state.
        ValueError: If it does not return one action per observation.
    """
    inputs: list[tuple[Any, Any]] = []
    for _, _, observation, info in asks:
        mask = mask_of(observation, info)
        inputs.append((without_mask(observation), None if mask is None else flattened(mask)))
    if len(asks) == 1 or (
        all(predictor.has_state is False for predictor, *_ in asks) and len({layout(each) for each in inputs}) == 1
    ):
        return _predicted(asks, inputs)
    return [_predicted([ask], [each])[0] for ask, each in zip(asks, inputs, strict=True)]


def _predicted(asks: Sequence[Ask], inputs: Sequence[tuple[Any, Any]]) -> list[Any]:
    """Calls `predict` once, with the parameters that it has."""
    predictor, agent, *_ = asks[0]
    views, masks = zip(*inputs, strict=True)
    named: dict[str, Any] = {}
    if predictor.takes("state") and (state := predictor.states.get(agent)) is not None:
        named["state"] = state
    if predictor.takes("episode_start"):
        named["episode_start"] = np.array([agent not in predictor.states for predictor, agent, *_ in asks])
    if predictor.takes("action_masks") and masks[0] is not None:
        named["action_masks"] = np.stack(masks)
    answer = predictor.policy.predict(_batch(views), **named)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise TypeError(f"predict must return actions and a state, got {answer!r} from {predictor.policy!r}")
    actions, state = answer
    for each, of, *_ in asks:
        each.states[of] = state
        if each.has_state is None:
            each.has_state = state is not None
    if isinstance(actions, np.ndarray) and actions.ndim and len(actions) == len(asks):
        return list(actions)  # the usual form, without checks that take microseconds
    return unstacked(checked_batch(predictor.policy_id, actions, len(asks)), len(asks))


def _batch(views: Sequence[Any]) -> Any:
    """Returns observations as one batch, which is a copy."""
    if len(views) == 1 and isinstance(views[0], np.ndarray):
        return views[0][np.newaxis].copy()
    return stacked(views)
