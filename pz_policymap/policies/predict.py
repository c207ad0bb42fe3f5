"""`Predictor`: a policy with `predict`, as in Stable-Baselines3, asked for the actions of PettingZoo agents."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.batching.act import act, mask_of
from pz_policymap.batching.nested_arrays import mapped
from pz_policymap.policies.action_masks import MASK, in_a_row, without_mask

_SEAT, _POLICY = "seat", "policy"  # keys of the infos that `act` hands to a predictor


def predicted_actions(
    predictor: Predictor, observations: Mapping[Any, Any], infos: Mapping[Any, Mapping[str, Any]]
) -> dict[Any, Any]:
    """Returns the actions of some agents, by agent: one call of `predict` where their observations can be stacked.

    Args:
        predictor: The policy that controls all of them.
        observations: What they observe, action masks included.
        infos: Their infos.
    """
    views, asked = dict[Any, Any](), dict[Any, Any]()
    for agent, observation in observations.items():
        mask = mask_of(observation, infos[agent])
        asked[agent] = {_SEAT: agent, _POLICY: predictor.policy_id} | ({} if mask is None else {MASK: in_a_row(mask)})
        views[agent] = without_mask(observation)
    return act({predictor.policy_id: predictor}, views, asked, info_key=_POLICY)


class Predictor:
    """A policy with `predict`, as Stable-Baselines3 has it, that plays several seats of an environment.

    Of `state`, `episode_start` and `action_masks` it is handed what its signature names. Seats are one batch, unless
    the policy has a state: how states are put together, only it knows, so each seat is a batch of one then.

    Args:
        policy: Its `predict` takes a batch of observations and returns actions and the next state.
        policy_id: Its policy id, for errors.
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
        self._has_state: bool | None = None if self._takes("state") else False  # None until it has answered once
        self._states: dict[Any, Any] = {}  # of the agents that have acted in this episode

    def begin(self) -> None:
        """Begins an episode."""
        self._states = {}

    def __call__(self, observations: Any, infos: Sequence[Mapping[str, Any]], action_mask: NDArray[Any] | None) -> Any:
        """Returns the actions of a batch, as `act` asks for them."""
        agents = [info[_SEAT] for info in infos]
        if len(agents) == 1 or self._has_state is False:
            return self._predict(observations, agents, action_mask)
        rows = [
            self._predict(
                mapped(lambda leaf, row=row: leaf[row : row + 1], observations),
                [agent],
                None if action_mask is None else action_mask[row : row + 1],
            )
            for row, agent in enumerate(agents)
        ]
        return mapped(lambda *leaves: np.concatenate(leaves), *rows)

    def _predict(self, observations: Any, agents: list[Any], action_mask: NDArray[Any] | None) -> Any:
        given: dict[str, Any] = {
            "state": self._states.get(agents[0]),
            "episode_start": np.array([agent not in self._states for agent in agents]),
            "action_masks": action_mask,
        }
        answer = self.policy.predict(
            observations, **{name: value for name, value in given.items() if value is not None and self._takes(name)}
        )
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise TypeError(f"predict must return actions and a state, got {answer!r} from {self.policy!r}")
        actions, state = answer
        if self._has_state is None:
            self._has_state = state is not None
        self._states.update((agent, state) for agent in agents)
        return actions

    def _takes(self, name: str) -> bool:
        return self._anything or name in self._named
