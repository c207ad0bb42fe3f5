"""Nested arrays: structure is kept, leaves are arrays or tensors."""

from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest

from pz_policymap.batching.nested_arrays import copied, layout, mapped, stacked, unstacked, with_rows


class Pair(NamedTuple):
    left: object
    right: object


A, B = np.arange(3), np.arange(3) + 10


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (A, A + 1),
        ({"x": A, "y": B}, {"x": A + 1, "y": B + 1}),
        (OrderedDict(x=A), {"x": A + 1}),
        ((A, [B, {"x": A}]), (A + 1, [B + 1, {"x": A + 1}])),
        (Pair(A, (B,)), Pair(A + 1, (B + 1,))),
        ((), ()),
    ],
)
def test_mapped_keeps_the_structure(value, expected):
    result = mapped(lambda leaf: leaf + 1, value)
    np.testing.assert_equal(result, expected)
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("first", "other", "message"),
    [
        ({"x": A}, {"y": A}, r"a dict of \['x'\] and a dict of \['y'\]"),
        ({"x": A}, A, r"a dict of \['x'\] and an array"),
        (A, (A,), "an array and a tuple of 1"),
        ((A, A), (A,), "a tuple of 2 and a tuple of 1"),
        ((A, A), [A, A], "a tuple of 2 and a list of 2"),
        (Pair(A, A), (A, A), "a Pair of 2 and a tuple of 2"),
        ({"x": (A,)}, {"x": A}, "a tuple of 1 and an array"),
    ],
)
def test_mapped_refuses_structures_that_differ(first, other, message):
    with pytest.raises(ValueError, match=message):
        mapped(lambda a, b: a, first, other)


def test_mapped_matches_dicts_by_key_whatever_their_order():
    assert mapped(lambda a, b: a + b, {"x": 1, "y": 2}, {"y": 20, "x": 10}) == {"x": 11, "y": 22}


@pytest.mark.parametrize(
    "other",
    [
        np.zeros(4, np.float32),
        np.zeros(3, np.float64),
        np.zeros((3, 1), np.float32),
        {"x": np.zeros(3, np.float32)},
        (np.zeros(3, np.float32),),
        None,
        0.0,
    ],
)
def test_layouts_differ_where_stacking_would_change_something(other):
    value = np.zeros(3, np.float32)
    assert layout(value) == layout(value + 1)
    assert layout(value) != layout(other)
    assert layout({"o": value}) != layout({"o": other})


def test_layouts_of_dicts_do_not_depend_on_their_order():
    assert layout({"x": A, "y": 1.0}) == layout({"y": 2.0, "x": B})


def test_unstacked_is_the_inverse_of_stacked():
    values = [{"o": np.array([i, i + 1]), "rest": Pair(float(i), (i % 2 == 0,))} for i in range(3)]
    batch = stacked(values)
    assert batch["o"].shape == (3, 2)
    assert batch["rest"].right[0].tolist() == [True, False, True]
    np.testing.assert_equal(unstacked(batch, 3), values)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (np.zeros(3), r"an array of 2 rows, got one of shape \(3,\)"),
        ({"x": np.zeros((2, 1)), "y": np.zeros((3, 2))}, r"an array of 2 rows, got one of shape \(3, 2\)"),
        (1, "a list or a tuple is structure"),
        ([0, 1], "a list or a tuple is structure"),
    ],
)
def test_every_leaf_has_one_row_per_agent(batch, message):
    with pytest.raises(ValueError, match=message):
        with_rows(batch, 2)


def test_tensors_are_stacked_and_unstacked_as_tensors():
    torch = pytest.importorskip("torch")
    values = [{"o": torch.tensor([1.0, 2.0])}, {"o": torch.tensor([3.0, 4.0])}]
    batch = stacked(values)
    assert torch.equal(batch["o"], torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert all(torch.equal(a["o"], b["o"]) for a, b in zip(unstacked(batch, 2), values, strict=True))


@pytest.mark.parametrize("change", [{"dtype": "float64"}, {"device": "meta"}])
def test_layouts_of_tensors_differ_by_dtype_and_device(change):
    torch = pytest.importorskip("torch")
    change = {name: getattr(torch, value) if name == "dtype" else value for name, value in change.items()}
    assert layout(torch.zeros(2)) == layout(torch.ones(2))
    assert layout(torch.zeros(2)) != layout(torch.zeros(2).to(**change))
    assert layout(torch.zeros(2)) != layout(np.zeros(2, np.float32))


def test_copied_shares_no_array_and_keeps_the_structure():
    board, item = np.zeros(2), object()
    value = {"a": [board, (board, item)], "b": 3}
    copy = copied(value)
    board += 1
    assert copy["a"][0].tolist() == copy["a"][1][0].tolist() == [0, 0]
    assert copy["a"][1][1] is item
    assert copy["b"] == 3
    assert isinstance(copy["a"][1], tuple)
