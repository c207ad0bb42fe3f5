"""Reads the infos of a vector environment row by row: a dict of arrays (Gymnasium) or a list with a dict a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.wrappers.vector_infos import FINAL

Infos = Mapping[str, Any] | Sequence[Mapping[str, Any]]


def policies_in(infos: Infos, key: str, rows: NDArray[np.intp]) -> NDArray[Any]:
    """Returns the policies that these rows are tagged with.

    Raises:
        TypeError: If a tag is no integer.
        ValueError: If a row has none, or a negative one.

    Example:
        >>> infos = {"policy_id": np.array([3, 0]), "_policy_id": np.array([True, False])}
        >>> policies_in(infos, "policy_id", rows=np.array([0])).tolist()
        [3]
    """
    if isinstance(infos, Mapping):
        tagged = np.asarray(infos.get(f"_{key}", np.full(rows.max(initial=-1) + 1, key in infos)))[rows]
        policies = np.asarray(infos[key])[rows] if tagged.all() else rows
    else:
        tagged = np.array([key in infos[row] for row in rows], np.bool_)
        policies = np.array([infos[row][key] for row in rows]) if tagged.all() else rows
    if not tagged.all():
        raise ValueError(
            f"infos of row {rows[~tagged][0]} have no {key!r}, so nobody knows who plays it: "
            f"record_results goes around the wrapper that writes it"
        )
    if len(rows) and policies.dtype.kind not in "iu":
        raise TypeError(f"infos[{key!r}] must be integers, got {policies[0]!r} for row {rows[0]}")
    if (policies < 0).any():
        raise ValueError(f"infos[{key!r}] must not be negative, got {policies.min()}")
    return policies


def terminal_info(infos: Infos, row: int) -> dict[str, Any]:
    """Returns the info of a row whose episode ended in this step, whether or not the next one has begun in it.

    Example:
        >>> final = {"winner": np.array([None, "red"]), "_winner": np.array([False, True])}
        >>> terminal_info({"final_info": final, "_final_info": np.array([False, True])}, row=1)
        {'winner': 'red'}
    """
    if not isinstance(infos, Mapping):
        info = dict(infos[row])
        return dict(info.get(FINAL, info))
    final = _entry(infos, FINAL, row)
    return _row(infos, row) if final is None else final


def _row(infos: Mapping[str, Any], row: int) -> dict[str, Any]:
    """Returns one row of a dict of arrays; keys that the row lacks are left out."""
    entries = {key: _entry(infos, key, row) for key in infos if not (key.startswith("_") and key[1:] in infos)}
    return {key: value for key, value in entries.items() if value is not None}


def _entry(infos: Mapping[str, Any], key: str, row: int) -> Any:
    """Returns one entry of one row, or None where it has none."""
    if key not in infos or not infos.get(f"_{key}", {row: True})[row]:
        return None
    value = infos[key]
    return _row(value, row) if isinstance(value, Mapping) else value[row]
