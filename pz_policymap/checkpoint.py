"""`save` and `load`: the states of several objects in one atomic, versioned checkpoint file.

    pm.save(path, env=env, payoff=payoff)
    env.load_state_dict(pm.load(path)["env"])

The file is a NumPy archive without pickle: arrays, and one JSON text for everything else. Loading a file of any origin
executes nothing and takes no more memory than the size of the file. It is written to a temporary file in the same
folder, flushed to disk and renamed, so that the path always holds a complete checkpoint.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

FORMAT = 1
_TEXT = "state.json"


class HasState(Protocol):
    """Anything whose `state_dict()` returns plain types, arrays, and dicts and lists of them."""

    def state_dict(self) -> dict[str, Any]:
        """Returns the state."""
        ...


def save(path: str | os.PathLike[str], **parts: HasState | dict[str, Any]) -> None:
    """Writes the states of several objects to one file, or leaves the old file unchanged.

    Args:
        path: The file; an existing one is replaced.
        **parts: The objects to save, by name: wrapped environments, ledgers, pools, anything with a `state_dict()`. Or
            states.

    Raises:
        TypeError: If a part has no state, or if a state holds a value that is neither plain nor an array.
        ValueError: If no part is given.
        OSError: If the file cannot be written.

    Example:
        >>> import tempfile
        >>> import pz_policymap as pm
        >>> from mpe2 import simple_spread_v3
        >>> env, payoff = pm.wrap(simple_spread_v3.parallel_env(), 4, seed=0), pm.Payoff(4)
        >>> path = tempfile.mkdtemp() + "/run.npz"
        >>> pm.save(path, env=env, payoff=payoff)
        >>> states = pm.load(path)
        >>> env.load_state_dict(states["env"])
        >>> payoff.load_state_dict(states["payoff"])
    """
    if not parts:
        raise ValueError("parts must be at least one object by name, such as env=env, got none")
    states: dict[str, Any] = {}
    for name, part in parts.items():
        state = part if isinstance(part, dict) else getattr(part, "state_dict", lambda: None)()
        if not isinstance(state, dict):
            raise TypeError(
                f"{name} must have a state_dict(), such as a wrapped environment, or be a state, got {part!r}"
            )
        states[name] = state
    arrays: list[NDArray[Any]] = []
    text = json.dumps({"format": FORMAT, "states": _packed(states, "states", arrays)})

    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_TEXT), text)  # without the time: equal states are equal bytes
        for number, array in enumerate(arrays):
            with archive.open(zipfile.ZipInfo(f"{number}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a temporary file that replaces the one at `path` when all is written; after an error, the old one stays.

    Args:
        path: The file; a symbolic link is followed.
    """
    place = Path(os.path.realpath(path))
    beside = place.with_name(f".{place.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _flush_folder(place.parent)


def load(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Returns the states that `save` wrote, by name; pass each one to `load_state_dict`.

    Args:
        path: The file that `save` wrote.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not a valid checkpoint, or was written by a newer version.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _check_sizes(archive)
            content = json.loads(archive.read(_TEXT))
            version = content["format"]
            if version == FORMAT:
                arrays = [_array(archive, f"{number}.npy") for number in range(len(archive.namelist()) - 1)]
                states: dict[str, dict[str, Any]] = _unpacked(content["states"], arrays)
                if not isinstance(states, dict) or not all(isinstance(state, dict) for state in states.values()):
                    raise TypeError(f"states must be a dict of dicts, got {states!r}")
                return states
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{path} is not a valid checkpoint: {error!r}") from error
    raise ValueError(f"{path} must have format {FORMAT}, got {version!r}, written by another version of pz_policymap")


# JSON has no arrays and no tuples; each becomes a dict with one of these keys.
_ARRAY, _TUPLE = "~array", "~tuple"
_KINDS = "biuf"  # of arrays: booleans, integers and floats


def _packed(value: Any, where: str, arrays: list[NDArray[Any]]) -> Any:
    """Returns a state in types that JSON can hold, and appends its arrays to `arrays`."""
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or key in (_ARRAY, _TUPLE):
                raise TypeError(f"{where} has a key that cannot be saved: {key!r}")
        return {key: _packed(item, f"{where}[{key!r}]", arrays) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_packed(item, f"{where}[{i}]", arrays) for i, item in enumerate(value)]
        return {_TUPLE: items} if isinstance(value, tuple) else items
    if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS and not isinstance(value, np.ma.MaskedArray):
        arrays.append(value)
        return {_ARRAY: len(arrays) - 1}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{where} cannot be saved: {value!r} ({type(value).__name__})")


def _unpacked(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """Returns the state that `_packed` took apart."""
    if isinstance(value, list):
        return [_unpacked(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if _TUPLE in value:
        return tuple(_unpacked(item, arrays) for item in value[_TUPLE])
    if _ARRAY in value:
        return arrays[value[_ARRAY]]
    return {key: _unpacked(item, arrays) for key, item in value.items()}


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Returns an array of the archive, or raises an error if `save` cannot have written it."""
    with archive.open(name) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise ValueError(f"{name} must have version (1, 0) of NumPy's format")
        shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        size = archive.getinfo(name).file_size - member.tell()
        if dtype.kind not in _KINDS or math.prod(shape) * dtype.itemsize != size:
            raise ValueError(f"{name} must hold numbers of type {dtype} and shape {shape}, got {size} bytes")
        member.seek(0)
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        return array


def _check_sizes(archive: zipfile.ZipFile) -> None:
    """Raises an error if an archive would grow when it is read; files written by `save` do not."""
    members = archive.infolist()
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError(f"{member.filename} is compressed")
    if archive.fp is not None and sum(member.file_size for member in members) > archive.fp.seek(0, os.SEEK_END):
        raise ValueError("its members are longer than the file")


def _flush_folder(folder: Path) -> None:
    """Makes the renaming survive a loss of power, if the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with contextlib.suppress(OSError):  # the file is complete and in its place
        handle = os.open(folder, os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
