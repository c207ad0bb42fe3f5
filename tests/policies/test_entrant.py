"""`Entrant`: a policy that each worker process loads once."""

import hashlib

import pytest

import pz_policymap as pm
from pz_policymap.policies.entrant import loaded


def test_entrant_passes_its_arguments_to_the_loading_function():
    entrant = pm.Entrant(dict, [("a", 1)], b=2)
    assert entrant.load() == {"a": 1, "b": 2}
    assert loaded(entrant) == {"a": 1, "b": 2}
    assert loaded("random") == "random"
    assert repr(entrant) == "Entrant(dict, [('a', 1)], b=2)"


def test_entrant_invalid_argument_raises():
    with pytest.raises(TypeError, match="load must be a callable that returns a policy, got 'v2.zip'"):
        pm.Entrant("v2.zip")
    with pytest.raises(TypeError, match="version must be a string or None, got 3"):
        pm.Entrant(dict, version=3)


def test_entrant_version_is_the_given_text_or_the_hash_of_its_files(tmp_path):
    weights = tmp_path / "v2.zip"
    assert pm.Entrant(open, str(weights)).version is None  # the file does not exist
    weights.write_bytes(b"weights")
    expected = f"sha256 {hashlib.sha256(b'weights').hexdigest()}"
    assert pm.Entrant(open, str(weights)).version == pm.Entrant(open, 1, file=weights).version == expected
    assert pm.Entrant(open, weights, version="two").version == "two"
    assert pm.Entrant(dict, 3).version is None


def test_entrant_from_folder_is_one_entrant_per_file(tmp_path):
    for name in ("v2.zip", "v1.zip", "notes.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder.zip").mkdir()
    entrants = pm.Entrant.from_folder(tmp_path, str.upper, "*.zip")
    assert list(entrants) == ["v1", "v2"]
    assert entrants["v1"].load() == str(tmp_path / "v1.zip").upper()
    with pytest.raises(ValueError, match=r"folder must hold files that match '\*.pt', got none"):
        pm.Entrant.from_folder(tmp_path, str.upper, "*.pt")
    (tmp_path / "v1.txt").touch()
    with pytest.raises(ValueError, match="folder must hold one file per name, got 'v1' twice"):
        pm.Entrant.from_folder(tmp_path, str.upper)
