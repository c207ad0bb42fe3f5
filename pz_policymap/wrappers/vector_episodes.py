"""`RowPolicies`: who plays each row of a batch, as the episodes of its environments end and begin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pz_policymap.assigner import PolicyAssigner
from pz_policymap.assignment import PolicyIds, read_only
from pz_policymap.wrappers.autoreset import NOBODY, Autoreset, Ends
from pz_policymap.wrappers.reset_options import AS_DRAWN
from pz_policymap.wrappers.vector_infos import Finished

Envs = NDArray[Any]  # the numbers of some environments, from 0


class RowPolicies:
    """Who plays each row, as the episodes of its environments end and begin.

    Args:
        assigner: Of the environments; each has as many rows as the assigner has agents.

    Attributes:
        policy_ids: The policy of each row, forced ones included, read-only, shape `(num_rows,)`; None before the first
            episode. Replaced and never written to.

    Example:
        >>> rows = RowPolicies(PolicyAssigner(8, ["a", "b"], num_envs=2, resample_every=1, seed=1))
        >>> rows.begin()
        >>> rows.policy_ids.tolist()
        [6, 1, 1, 7]
        >>> over = np.array([False, False, True, True])  # both rows of the second environment
        >>> finished = rows.after_step(Autoreset.SAME_STEP, over, over)
        >>> rows.policy_ids.tolist(), finished.policy_ids[finished.rows].tolist()
        ([6, 1, 4, 6], [1, 7])
    """

    def __init__(self, assigner: PolicyAssigner) -> None:
        self.policy_ids: PolicyIds | None = None
        self._assigner = assigner
        self._shape = (assigner.num_envs, len(assigner.agents))
        self._ends = Ends(*self._shape)
        self._due: Envs = NOBODY  # the environments that the next step resets
        self._forced: PolicyIds | None = None  # by environment and seat, where a matchup is forced

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.policy_ids is not None:
            read_only(self.policy_ids)  # which NumPy forgets in a copy

    def begin(self, envs: Envs | None = None, seed: Any = None, forced: PolicyIds | None = None) -> None:
        """Begins the next episode of some environments; if it raises, none has begun.

        Args:
            envs: Their numbers; None: all.
            seed: As in `PolicyAssigner.begin_episodes`.
            forced: Who plays these episodes, -1 as drawn, by environment and seat, for all environments.
        """
        drawn = self._assigner.begin_episodes(envs, seed=seed)
        drawn = drawn[:, : self._shape[1]]  # a loaded state may know agents that came late, who have no row here
        self._ends.begin(envs)
        if envs is None or envs is self._due:
            self._due = NOBODY
        elif len(self._due):
            self._due = np.setdiff1d(self._due, envs)
        if forced is not None or self._forced is not None:
            drawn = self._with_forced(drawn, slice(None) if envs is None else envs, forced)
        self.policy_ids = read_only(drawn.reshape(-1))

    def after_step(
        self, autoreset: Autoreset | None, terminations: ArrayLike, truncations: ArrayLike
    ) -> Finished | None:
        """Ends and begins episodes after a step, and returns those that this step ended and already began anew."""
        if len(self._due):
            self.begin(self._due)
        ended = self._ends.after(terminations, truncations)
        if not len(ended) or autoreset is Autoreset.DISABLED:
            return None
        if autoreset is Autoreset.NEXT_STEP:
            self._due = ended
            return None
        played = self.policy_ids
        self.begin(ended)
        return None if played is None else Finished(played, self._ends.rows_of(ended))

    def unfinished(self) -> NDArray[np.bool_]:
        """Returns which environments are in the middle of an episode."""
        if self.policy_ids is None:
            return np.zeros(self._shape[0], np.bool_)
        return ~self._ends.over()

    def _with_forced(self, drawn: PolicyIds, begun: Envs | slice, matchup: PolicyIds | None) -> PolicyIds:
        """Returns who plays, forced matchups laid over what was drawn; those of episodes that are over are dropped."""
        forced = np.full(self._shape, AS_DRAWN, np.int32) if self._forced is None else self._forced.copy()
        forced[begun] = AS_DRAWN if matchup is None else matchup[begun]
        is_forced = forced != AS_DRAWN
        self._forced = forced if is_forced.any() else None
        return np.where(is_forced, forced, drawn)
