"""Reads and tags the infos of a vector environment: a dict of arrays (Gymnasium's) or one dict per row (SuperSuit's).

The environment's dicts and arrays are never written to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import row_numbers
from pz_policymap.batching.nested_arrays import on_host
from pz_policymap.mappings.base import PolicyIds
from pz_policymap.wrappers.policy_wrapper import check_free

FINAL = "final_info"  # Gymnasium's key for the infos of an episode that ended in the step that began the next one

Rows = NDArray[np.bool_]
Infos = Mapping[str, Any] | Sequence[Mapping[str, Any]]

_ALL_ROWS = (
    "return all rows in each call (EnvPool: batch_size=num_envs), or drive a PolicyAssigner with begin_episodes(rows)"
)


class Finished(NamedTuple):
    """The episodes that ended in the step that began the next ones.

    Attributes:
        policy_ids: The policies that controlled their rows, shape `(num_rows,)`.
        rows: A mask of their rows, shape `(num_rows,)`.
    """

    policy_ids: PolicyIds
    rows: Rows


def tagged_dict(
    infos: Mapping[str, Any], key: str, policy_ids: PolicyIds, everyone: Rows, finished: Finished | None
) -> dict[str, Any]:
    """Returns a dict of arrays with the tag and its mask. The tag of finished episodes goes into `final_info`.

    Args:
        infos: From the environment.
        key: The key of the tag.
        policy_ids: One per row.
        everyone: The mask of the tag.
        finished: The episodes that ended, if any.

    Raises:
        ValueError: If the environment already uses the key in `final_info`.
    """
    tagged = {**infos, key: policy_ids, f"_{key}": everyone}
    if finished is None:
        return tagged
    final, rows = infos.get(FINAL, {}), finished.rows
    if f"_{FINAL}" in infos:
        rows = rows | on_host(infos[f"_{FINAL}"])  # rows that ended before the episode of their environment did
    check_free(final, key)
    tagged[FINAL] = {**final, key: finished.policy_ids, f"_{key}": rows}
    tagged[f"_{FINAL}"] = rows
    return tagged


def tagged_list(
    infos: Sequence[Mapping[str, Any]], key: str, policy_ids: PolicyIds, finished: Finished | None
) -> list[dict[str, Any]]:
    """Returns one fresh dict per row, with the tag a plain int; arguments and errors as in `tagged_dict`."""
    tagged = [{**info, key: policy} for info, policy in zip(infos, policy_ids.tolist(), strict=True)]
    if finished is not None:
        for row in np.flatnonzero(finished.rows).tolist():
            final = infos[row].get(FINAL, {})
            check_free(final, key)
            tagged[row][FINAL] = {**final, key: int(finished.policy_ids[row])}
    return tagged


def unpacked(infos: Any, starts: Sequence[int] | None) -> Any:
    """Returns infos as a dict of arrays or as one dict per row.

    At reset, SuperSuit's process pool returns one list of (row, info) pairs per process instead.

    Args:
        infos: From the environment.
        starts: The first row of each process, and the number of rows; None without processes.

    Example:
        >>> unpacked([[(0, {"a": 1})], [(1, {"b": 2})]], starts=[0, 2, 4])
        [{'a': 1}, {}, {}, {'b': 2}]
    """
    if isinstance(infos, Mapping) or starts is None or all(isinstance(info, Mapping) for info in infos):
        return infos
    rows: list[Any] = [{} for _ in range(starts[-1])]
    for start, pairs in zip(starts, infos, strict=False):
        for offset, info in pairs:
            rows[start + offset] = info
    return rows


def check_rows(num_rows: int, values: Any, infos: Infos) -> None:
    """Raises if a batch does not have one row per seat, in order, as when an environment returns part of its rows.

    Args:
        num_rows: The expected number of rows.
        values: Observations at reset, done flags at a step.
        infos: From the environment; `env_id`, an integer array without a mask, names the rows (EnvPool's).

    Raises:
        TypeError: If infos are neither a dict nor a list.
        ValueError: If there are more or fewer rows, or if they are in another order.
    """
    if isinstance(infos, str) or not isinstance(infos, (Mapping, Sequence)):
        raise TypeError(f"infos must be a dict of arrays, or a list of one dict per row, got {infos!r}")
    shape = getattr(values, "shape", None)
    count = shape[0] if shape else len(infos) if isinstance(infos, list) else num_rows
    if count != num_rows:
        raise ValueError(f"env must return {num_rows} rows, one per entry of num_envs, got {count}: {_ALL_ROWS}")
    if not isinstance(infos, Mapping):
        if len(infos) != num_rows:
            raise ValueError(f"infos must have {num_rows} entries, one per row, got {len(infos)}: {_ALL_ROWS}")
    elif "env_id" in infos and "_env_id" not in infos:
        named = on_host(infos["env_id"])
        if named.dtype.kind in "iu" and not np.array_equal(named, np.arange(num_rows)):
            raise ValueError(f"infos['env_id'] must be 0 to {num_rows - 1} in order, got {named}: {_ALL_ROWS}")


def named_rows(num_rows: int, values: Any, infos: Infos) -> NDArray[np.intp] | None:
    """Returns the rows of a batch that `infos["env_id"]` names, as EnvPool does, or None if it is not part of a batch.

    Args:
        num_rows: The number of all rows.
        values: Observations at reset, done flags at a step.
        infos: From the environment.

    Raises:
        ValueError: If a named row does not exist or is named twice.

    Example:
        >>> named_rows(4, np.zeros(2), {"env_id": np.array([3, 1])})
        array([3, 1])
    """
    if not isinstance(infos, Mapping) or "env_id" not in infos or "_env_id" in infos:
        return None
    named = on_host(infos["env_id"])
    count = getattr(values, "shape", named.shape)[:1]
    if named.dtype.kind not in "iu" or count != named.shape or np.array_equal(named, np.arange(num_rows)):
        return None
    return row_numbers("infos['env_id']", named, num_rows)


def policies_in(infos: Infos, key: str, rows: NDArray[np.intp]) -> NDArray[Any]:
    """Returns the policies that these rows are tagged with.

    Raises:
        TypeError: If a tag is not an integer.
        ValueError: If a row has no tag, or a negative one.

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
            f"infos of row {rows[~tagged][0]} have no {key!r}: call record_results on an environment that is already "
            f"wrapped with a policy wrapper"
        )
    if len(rows) and policies.dtype.kind not in "iu":
        raise TypeError(f"infos[{key!r}] must be integers, got {policies[0]!r} for row {rows[0]}")
    if (policies < 0).any():
        raise ValueError(f"infos[{key!r}] must be >= 0, got {policies.min()}")
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
    """Returns one row of a dict of arrays, without the keys that the row does not have."""
    entries = {key: _entry(infos, key, row) for key in infos if not (key.startswith("_") and key[1:] in infos)}
    return {key: value for key, value in entries.items() if value is not None}


def _entry(infos: Mapping[str, Any], key: str, row: int) -> Any:
    """Returns one entry of one row, or None if the row does not have it."""
    if key not in infos or not infos.get(f"_{key}", {row: True})[row]:
        return None
    value = infos[key]
    if isinstance(value, Mapping):
        return _row(value, row)
    return value[row] if getattr(value, "shape", None) or isinstance(value, (list, tuple)) else value
