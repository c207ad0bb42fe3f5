"""`VectorPolicyWrapper`: the base class of the policy wrappers of many environments."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from gymnasium.error import ResetNeeded
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from pz_policymap.arguments import row_numbers
from pz_policymap.assigner import PolicyAssigner
from pz_policymap.batching.nested_arrays import array_for, first_leaf, is_tensor, on_host
from pz_policymap.mappings.base import PolicyIds
from pz_policymap.mappings.conversion import MappingLike
from pz_policymap.wrappers.autoreset import Autoreset
from pz_policymap.wrappers.policy_wrapper import PolicyWrapper, reset_failed
from pz_policymap.wrappers.row_policies import RowPolicies
from pz_policymap.wrappers.vector_episodes import MASK, Envs, VectorEpisodes


class VectorPolicyWrapper(PolicyWrapper):
    """Wraps many environments that are stepped together; each row of `policy_ids` changes as its episodes begin.

    Attributes:
        agents: The agents of one environment in seat order.
        episodes: When the episodes of the environments begin and end.
    """

    agents: tuple[Any, ...]
    episodes: VectorEpisodes

    def _manage(
        self,
        mapping: MappingLike,
        agents: Sequence[Hashable],
        episodes: VectorEpisodes,
        ids_shape: tuple[int, ...],
        settings: dict[str, Any],
    ) -> None:
        """Sets up the assigner and the policy ids of the wrapper; called once, by its constructor."""
        self.assigner = PolicyAssigner(mapping, agents, episodes.num_envs, **{"env_index": 0} | settings)
        self.agents = self.assigner.agents  # a state loaded later may hold agents that joined late
        self.episodes = episodes
        self._rows = RowPolicies(self.assigner, episodes, ids_shape)
        self._failed = False  # in the middle of a reset or a step, which may leave some episodes without a draw
        self._elsewhere: tuple[Any, Any, Any] = None, None, None  # the ids, a kind of array, and the ids as such

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, num_envs={self.assigner.num_envs}, num_seats={len(self.agents)}>"

    @property
    def policy_ids(self) -> PolicyIds:
        """The policy of every seat in its episode, forced ones included: read-only, replaced and never written to.

        Raises:
            AttributeError: Before the first reset.
        """
        policy_ids = self._rows.policy_ids
        if policy_ids is None:
            raise AttributeError("policy_ids cannot be accessed before reset")
        return policy_ids

    def policy_ids_as(self, like: Any) -> Any:
        """Returns `policy_ids` as the same kind of array as `like`, on its device; moved there once per change.

        Args:
            like: A NumPy array, a torch tensor, a JAX array, or a dict, tuple or list of them, such as observations.

        Returns:
            Policy ids of the shape of `policy_ids`: int64 for torch, which indexes with it, and else int32. Do not
            write to them.

        Raises:
            AttributeError: Before the first reset.
        """
        policy_ids, leaf = self.policy_ids, first_leaf(like)
        kind = type(leaf), getattr(leaf, "device", None)
        if self._elsewhere[0] is not policy_ids or self._elsewhere[1] != kind:
            moved = array_for(leaf, policy_ids.astype("int64") if is_tensor(leaf) else policy_ids)
            self._elsewhere = policy_ids, kind, moved
        return self._elsewhere[2]

    @property
    def autoreset_mode(self) -> Autoreset | None:
        """The autoreset mode in use; None before the first reset of an environment that does not declare it."""
        return self.episodes.autoreset

    def end_episodes(self, envs: ArrayLike) -> PolicyIds:
        """Begins the next episode of some environments, for simulators whose done flags do not mark the end.

        Call it after the step whose observation is the first of the new episode. Wrap with
        `autoreset_mode="Disabled"`, so that rows which end and respawn do not end an episode.

        Args:
            envs: A boolean mask of the environments, shape `(num_envs,)`, or their indices, >= 0.

        Returns:
            `policy_ids` after it.

        Raises:
            TypeError, ValueError: If `envs` is neither, or if the mapping fails. Nothing has changed then.
            ResetNeeded: Before the first reset.
        """
        self._require_reset("end_episodes")
        chosen = row_numbers("envs", on_host(envs), self.assigner.num_envs)
        if len(chosen):
            self._rows.begin(chosen)
        return self.policy_ids

    def _check_some(self, envs: Envs, mask: Any) -> None:
        """Raises a ValueError if a mask selects some environments where all must be reset."""
        if (self._rows.policy_ids is None or self._failed) and len(envs) < self.assigner.num_envs:
            raise ValueError(
                f"options[{MASK!r}] must select all rows at the first reset and after a failed reset or step, "
                f"got {mask!r}"
            )

    def _require_reset(self, name: str) -> PolicyIds:
        policy_ids = self._rows.policy_ids
        if policy_ids is None:
            raise ResetNeeded(f"{name} cannot be called before reset")
        if self._failed:
            raise reset_failed(f"{name} cannot be called")
        return policy_ids

    @override
    def _unfinished(self) -> NDArray[Any]:
        return self._rows.unfinished

    @override
    def _drop_episode(self) -> None:
        self._rows.forget()


def seed_of_all(seed: Any) -> Any:
    """Returns a seed of the vector as the assigner takes it; None if only some environments are seeded."""
    if isinstance(seed, Iterable):
        seeds = list(seed)
        return None if None in seeds else seeds
    return seed
