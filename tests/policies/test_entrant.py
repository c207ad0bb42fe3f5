"""`Entrant`: a policy that is loaded where it acts."""

import pytest

import pz_policymap as pm
from pz_policymap.policies.entrant import loaded


def test_arguments_reach_the_loading_function():
    entrant = pm.Entrant(dict, [("a", 1)], b=2)
    assert entrant.load() == {"a": 1, "b": 2}
    assert loaded(entrant) == {"a": 1, "b": 2}
    assert loaded("random") == "random"
    assert repr(entrant) == "Entrant(dict, [('a', 1)], b=2)"


def test_something_that_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="load must be a callable that returns a policy, got 'v2.zip'"):
        pm.Entrant("v2.zip")
