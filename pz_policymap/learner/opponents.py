"""`Opponents`: the policies that play all seats but the learner's."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.batching.nested_arrays import mapped
from pz_policymap.batching.policy_groups import act, mask_of
from pz_policymap.learner.action_masks import MASK, in_a_row, without_mask

_SEAT, _POLICY = "seat", "policy"  # keys of the infos that `act` hands to a predictor


class Opponents:
    """Asks the policies of an episode for their actions.

    Args:
        policies: As in `LearnerEnv`.

    Raises:
        TypeError: If `policies` are neither a dict nor a sequence.
    """

    def __init__(self, policies: Mapping[int, Any] | Sequence[Any]) -> None:
        self._playing: dict[int, Any] = {}
        self._predictors: dict[int, Predictor]
        self.replace(policies)

    def replace(self, policies: Mapping[int, Any] | Sequence[Any]) -> None:
        """Takes other policies from the next episode on; arguments and errors as in the constructor."""
        if not isinstance(policies, (Mapping, Sequence)) or isinstance(policies, (str, bytes)):
            raise TypeError(f"policies must be a dict from index to policy or a sequence, got {policies!r}")
        self._policies = policies
        self._predictors = {}  # what is known of those before, and they themselves, are not kept

    def begin(self, ids: Iterable[int]) -> None:
        """Begins an episode that these policies play; nobody remembers anything.

        Raises:
            KeyError: If a policy is missing.
            TypeError: If one is neither callable nor has `predict`.
        """
        self._playing = {}
        for policy in sorted(set(ids)):
            self._seat(policy)

    def act(self, players: Mapping[Any, int], observations: Mapping[Any, Any], infos: Mapping[Any, Any]) -> Any:
        """Returns everybody's action.

        Args:
            players: The policy of every agent.
            observations: What those observe who act, as it comes from the environment.
            infos: Their infos, the same.
        """
        actions, together = dict[Any, Any](), dict[Any, Any]()
        for agent, observation in observations.items():
            policy, info = players[agent], infos[agent]
            if policy not in self._playing:
                self._seat(policy)  # it has come late
            player = self._playing[policy]
            if isinstance(player, Predictor):
                mask = mask_of(observation, info)
                together[agent] = {_SEAT: agent, _POLICY: policy} | ({} if mask is None else {MASK: in_a_row(mask)})
            else:
                actions[agent] = player(observation, agent, info)
        if together:
            views = {agent: without_mask(observations[agent]) for agent in together}
            actions |= act(self._playing, views, together, info_key=_POLICY)
        return actions

    def _seat(self, policy: int) -> None:
        held = self._policies if isinstance(self._policies, Mapping) else range(len(self._policies))
        if policy not in held:
            raise KeyError(f"policies must hold every opponent, got none for policy {policy} in {list(held)}")
        given = self._policies[policy]
        if callable(getattr(given, "predict", None)):
            known = self._predictors.get(policy)
            player = known if known is not None and known.policy is given else Predictor(given)
            player.begin()
            self._playing[policy] = self._predictors[policy] = player
        elif callable(given):
            self._playing[policy] = given
        else:
            raise TypeError(f"policies[{policy}] must be callable or have predict, got {given!r}")


class Predictor:
    """A policy with `predict`, as Stable-Baselines3 has it, that plays several seats of an environment.

    Of `state`, `episode_start` and `action_masks` it is handed what its signature names. Seats are one batch, unless
    the policy has a state: how states are put together, only it knows, so each seat is a batch of one then.

    Args:
        policy: Its `predict` takes a batch of observations and returns actions and the next state.
    """

    def __init__(self, policy: Any) -> None:
        self.policy = policy
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
