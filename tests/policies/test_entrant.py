"""`Entrant`: a policy that is loaded where it acts."""

import pytest

import pz_policymap as pm
from pz_policymap.policies.entrant import loaded


def test_entrant_passes_arguments_to_load():
    entrant = pm.Entrant(dict, [("a", 1)], b=2)
    assert entrant.load() == {"a": 1, "b": 2}
    assert loaded(entrant) == {"a": 1, "b": 2}
    assert loaded("random") == "random"
    assert repr(entrant) == "Entrant(dict, [('a', 1)], b=2)"


def test_load_that_is_not_callable_raises():
    with pytest.raises(TypeError, match="load must be a callable that returns a policy, got 'v2.zip'"):
        pm.Entrant("v2.zip")
