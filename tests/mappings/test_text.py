"""The text form of mappings: `repr` and `mapping_from_text` are inverse, and text is parsed, never evaluated."""

import pytest

from pz_policymap import (
    Balanced,
    ByEnvIndex,
    Fixed,
    Focal,
    PerWorker,
    Roles,
    RoundRobin,
    Shared,
    Teams,
    Uniform,
    Weighted,
    mapping_from_text,
    wrap,
)
from pz_policymap.mappings.conversion import as_mapping
from tests.stub_envs import StubParallel


@pytest.mark.parametrize(
    ("mapping", "text"),
    [
        (Uniform(4), "Uniform(4)"),
        (Uniform([5, 2], replace=False), "Uniform([5, 2], replace=False)"),
        (Weighted([0.5, 3.0]), "Weighted([0.5, 3])"),
        (Weighted([1, 2], policies=[7, 4]), "Weighted([1, 2], policies=[7, 4])"),
        (Fixed({"a": 1}), "Fixed({'a': 1})"),
        (ByEnvIndex(2, num_envs=4), "ByEnvIndex(2, num_envs=4)"),
        (Shared(Uniform(3)), "Shared(Uniform(3))"),
        (Teams(Uniform(3), {"a": 0}), "Teams(Uniform(3), team_of={'a': 0})"),
        (Roles({"red": Fixed(1), 2: Uniform(2)}), "Roles({'red': Fixed(1), 2: Uniform(2)})"),
        (
            Focal(Fixed(0), Weighted([[0, 1], [1, 0]]), num_focal=2),
            "Focal(Fixed(0), Weighted([[0, 1], [1, 0]]), num_focal=2)",
        ),
        (PerWorker(6, 2, 3), "PerWorker(6, 2, 3)"),
        (Balanced(2, 4, [1, 3]), "Balanced(2, 4, weights=[1, 3])"),
        (RoundRobin(3, order="seeded"), "RoundRobin(3, order='seeded')"),
    ],
)
def test_repr_of_a_mapping_is_its_text_form(mapping, text):
    assert eval(repr(mapping)) == mapping
    assert mapping_from_text(repr(mapping)) == mapping
    assert mapping_from_text(text) == mapping
    if not isinstance(mapping, Roles):  # whose dict is sorted by text
        assert repr(mapping) == text


@pytest.mark.parametrize(
    "text",
    ["", "Uniform(", "open('x')", "__import__('os')", "Uniform(4).assign", "Uniform(0)", "Uniform(1, 2, 3, 4)", "[1]"],
)
def test_text_that_is_not_a_mapping_raises(text):
    with pytest.raises(ValueError):
        mapping_from_text(text)


def test_wrap_accepts_the_text_form():
    assert as_mapping("4") == Uniform(4)
    env = wrap(StubParallel(), "Fixed(3)")
    env.reset(seed=0)
    assert set(env.policy_ids.values()) == {3}


def test_text_that_is_not_a_string_raises():
    with pytest.raises(TypeError, match="text must be a string, got 4"):
        mapping_from_text(4)
