"""Tags the infos of a vector environment: a dict of arrays (Gymnasium) or a list with a dict a row (SuperSuit).

Neither the environment's dicts nor the arrays handed in are written to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FINAL = "final_info"  # where Gymnasium puts the infos of an episode that ended in the step that began the next

Rows = NDArray[np.bool_]
PolicyIds = NDArray[np.integer[Any]]


class Finished(NamedTuple):
    """The episodes that ended in the step that began the next ones.

    Attributes:
        policy_ids: Who played them, one a row.
        rows: Which rows they are.
    """

    policy_ids: PolicyIds
    rows: Rows


def tagged_dict(
    infos: Mapping[str, Any], key: str, policy_ids: PolicyIds, everyone: Rows, finished: Finished | None
) -> dict[str, Any]:
    """Returns a dict of arrays with the tag and its mask; the tag of finished episodes goes into `final_info`.

    Args:
        infos: From the environment.
        key: Of the tag.
        policy_ids: One a row.
        everyone: The mask of the tag.
        finished: The episodes that ended, if any.

    Raises:
        ValueError: If the environment uses the key itself in `final_info`.
    """
    tagged = {**infos, key: policy_ids, f"_{key}": everyone}
    if finished is None:
        return tagged
    final, rows = infos.get(FINAL, {}), finished.rows
    if f"_{FINAL}" in infos:
        rows = rows | infos[f"_{FINAL}"]  # rows that ended before the episode of their environment did
    check_free(final, key)
    tagged[FINAL] = {**final, key: finished.policy_ids, f"_{key}": rows}
    tagged[f"_{FINAL}"] = rows
    return tagged


def tagged_list(
    infos: Sequence[Mapping[str, Any]], key: str, policy_ids: PolicyIds, finished: Finished | None
) -> list[dict[str, Any]]:
    """Returns a fresh dict a row, with the tag a plain int; arguments and errors as in `tagged_dict`."""
    tagged = [{**info, key: policy} for info, policy in zip(infos, policy_ids.tolist(), strict=True)]
    if finished is not None:
        for row in np.flatnonzero(finished.rows).tolist():
            final = infos[row].get(FINAL, {})
            check_free(final, key)
            tagged[row][FINAL] = {**final, key: int(finished.policy_ids[row])}
    return tagged


def unpacked(infos: Sequence[Any], starts: Sequence[int] | None) -> Sequence[Any]:
    """Returns a list with an info a row.

    SuperSuit's process pool hands out, at reset, a list of (row, info) pairs a process instead.

    Args:
        infos: From the environment.
        starts: The first row of each process, and the number of rows; None where there are none.

    Example:
        >>> unpacked([[(0, {"a": 1})], [(1, {"b": 2})]], starts=[0, 2, 4])
        [{'a': 1}, {}, {}, {'b': 2}]
    """
    if starts is None or all(isinstance(info, Mapping) for info in infos):
        return infos
    rows: list[Any] = [{} for _ in range(starts[-1])]
    for start, pairs in zip(starts, infos, strict=False):
        for offset, info in pairs:
            rows[start + offset] = info
    return rows


def check_free(infos: Mapping[str, Any] | Sequence[Mapping[str, Any]], key: str) -> None:
    """Raises a ValueError if the environment uses the key of the tag itself."""
    for info in (infos,) if isinstance(infos, Mapping) else infos:
        if key in info:
            raise ValueError(
                f"info_key {key!r} is already used by the environment: an info is {dict(info)}; "
                f"wrap with another info_key"
            )
