"""`RowPolicies`: the policy that controls each row of a vector environment, episode after episode."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.assigner import PolicyAssigner
from pz_policymap.assignment import read_only
from pz_policymap.mappings.base import PolicyIds
from pz_policymap.wrappers.reset_options import AS_DRAWN
from pz_policymap.wrappers.vector_episodes import Envs, VectorEpisodes
from pz_policymap.wrappers.vector_infos import Finished


class RowPolicies:
    """The policy of each row; draws where an episode begins.

    Args:
        assigner: Has one environment per group of rows.
        episodes: Tracks when episodes begin and end.
        ids_shape: The shape of `policy_ids`, by row or by environment and seat.

    Example:
        >>> from pz_policymap.wrappers.autoreset import Autoreset
        >>> episodes = VectorEpisodes(num_envs=2, num_seats=2, autoreset=Autoreset.SAME_STEP)
        >>> rows = RowPolicies(PolicyAssigner(8, ["a", "b"], num_envs=2, resample_every=1, seed=1), episodes)
        >>> rows.begin()
        >>> rows.policy_ids.tolist()
        [6, 1, 1, 7]
        >>> over = np.array([False, False, True, True])  # both rows of the second environment
        >>> finished = rows.after_step(over, over)
        >>> rows.policy_ids.tolist(), finished.policy_ids[finished.rows].tolist()
        ([6, 1, 4, 6], [1, 7])
    """

    def __init__(self, assigner: PolicyAssigner, episodes: VectorEpisodes, ids_shape: tuple[int, ...] = (-1,)) -> None:
        self._assigner = assigner
        self._ids_shape = ids_shape
        self._episodes = episodes
        self._shape = (assigner.num_envs, len(assigner.agents))
        self._policy_ids: PolicyIds | None = None
        self._forced: PolicyIds | None = None  # shape (num_envs, num_seats), while a forced matchup is in force
        self._undrawn = np.ones(assigner.num_envs, np.bool_)  # environments whose running episode has no draw
        self._all_drawn = False  # avoids reading the array in each step

    @property
    def policy_ids(self) -> PolicyIds | None:
        """The policy of each row, forced ones included, read-only, in the given shape; None before the first episode.

        The array is replaced and never written to.
        """
        # Set at each access, because NumPy drops the flag in copies and pickles.
        return None if self._policy_ids is None else read_only(self._policy_ids)

    def begin(self, envs: Envs | None = None, seed: Any = None, forced: PolicyIds | None = None) -> None:
        """Begins the next episode of some environments after a reset; if it raises, no episode has begun.

        Args:
            envs: Indices of the environments; None: all.
            seed: As in `PolicyAssigner.begin_episodes`.
            forced: The policies of these episodes, -1 as drawn, shape `(num_envs, num_seats)`.
        """
        self._draw(envs, seed, forced)
        self._episodes.begin(envs)

    def after_step(self, *ends: Any) -> Finished | None:
        """Draws for the episodes that a step began. Returns those that ended in SAME_STEP, or None.

        Args:
            *ends: The done flags.
        """
        change = self._episodes.after_step(*ends)
        if len(change.reset):
            self._draw_or_mark(change.reset)
        finished = self.policy_ids if len(change.restarted) else None
        if finished is None:
            return None
        self._draw_or_mark(change.restarted)
        return Finished(finished, self._episodes.mask_of(change.restarted))

    @property
    def unfinished(self) -> NDArray[np.bool_]:
        """Which environments are in the middle of an episode of this schedule, shape `(num_envs,)`."""
        return ~(self._undrawn | self._episodes.over())

    def forget(self) -> None:
        """Ignores the running episodes, after another schedule has been loaded."""
        self._undrawn[:] = True
        self._all_drawn = False

    def _draw_or_mark(self, envs: Envs) -> None:
        """Draws for environments that have begun an episode, and marks them as undrawn if that fails."""
        try:
            self._draw(envs)
        except BaseException:  # a KeyboardInterrupt included
            self._undrawn[envs] = True
            self._all_drawn = False
            raise

    def _draw(self, envs: Envs | None, seed: Any = None, forced: PolicyIds | None = None) -> None:
        drawn = self._assigner.begin_episodes(envs, seed=seed)
        drawn = drawn[:, : self._shape[1]]  # a loaded state may hold agents that joined late and have no row here
        begun = slice(None) if envs is None else envs
        if not self._all_drawn:
            self._undrawn[begun] = False
            self._all_drawn = not self._undrawn.any()
        if forced is not None or self._forced is not None:
            drawn = self._with_forced(drawn, begun, forced)
        self._policy_ids = read_only(drawn.reshape(self._ids_shape))

    def _with_forced(self, drawn: PolicyIds, begun: Envs | slice, matchup: PolicyIds | None) -> PolicyIds:
        """Returns the drawn policies overlaid with forced ones; matchups of past episodes are dropped."""
        forced = np.full(self._shape, AS_DRAWN, np.int32) if self._forced is None else self._forced.copy()
        forced[begun] = AS_DRAWN if matchup is None else matchup[begun]
        is_forced = forced != AS_DRAWN
        self._forced = forced if is_forced.any() else None
        return np.where(is_forced, forced, drawn)
