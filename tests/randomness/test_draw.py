"""`Draw`: the input of a mapping, and the bits of each seat."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pz_policymap import Draw, Uniform
from pz_policymap.randomness.draw import MAX_STREAM
from pz_policymap.randomness.philox import SALT

AGENTS = [f"agent_{i}" for i in range(300)]


def seat_bits(seed, env_index, seat, episode, stream=0):
    """The contract, written down once more: word seat % 4 at (env index, seat // 4, episode, stream)."""
    key = np.random.SeedSequence([seed, SALT]).generate_state(2, np.uint64)
    before = (env_index + (seat // 4 << 64) + (episode << 128) + (stream << 192) - 1) % 2**256
    return int(np.random.Philox(key=key, counter=before).random_raw(4)[seat % 4]) >> 11


@given(
    st.integers(0, 2**70),
    st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**32)), min_size=1, max_size=4),
    st.integers(1, 300),
    st.integers(0, MAX_STREAM),
)
def test_every_seat_has_its_own_bits_however_many_environments_and_seats_are_drawn(seed, counters, seats, stream):
    draw = Draw.at(seed, AGENTS[:seats], [e for e, _ in counters], [k for _, k in counters])
    bits = draw.bits(stream)
    assert bits.shape == (len(counters), seats)
    for seat in {0, seats // 2, seats - 1}:
        assert bits[:, seat].tolist() == [seat_bits(seed, e, seat, k, stream) for e, k in counters]


def test_bits_do_not_depend_on_the_number_of_seats():
    few, many = (Draw.at(5, AGENTS[:n], [3, 9], [0, 40]).bits() for n in (7, 300))
    np.testing.assert_array_equal(few, many[:, :7])


def test_bits_do_not_depend_on_earlier_draws():
    draw = Draw.at(5, AGENTS[:3], [3], [0])
    first = draw.bits()
    draw.bits(1), draw.uniform(), draw.integers(7)
    np.testing.assert_array_equal(draw.bits(), first)


def test_uniform_and_integers_are_the_bits_scaled():
    draw = Draw.at(1, AGENTS[:9], np.arange(1000), np.zeros(1000, np.int64))
    uniform = draw.uniform(3)
    assert uniform.min() >= 0
    assert uniform.max() < 1
    np.testing.assert_array_equal(uniform * 2**53, draw.bits(3))
    for high in (1, 2, 3, 7, 1000, 2**31 - 1):
        np.testing.assert_array_equal(draw.integers(high, 3), np.floor(uniform * high).astype(int))


@given(st.integers(1, 2**31 - 1))
def test_integers_of_the_largest_bits_stay_below_high(high):
    assert int((2**53 - 1) * (high * 2.0**-53)) == high - 1  # the product that `integers` takes


@pytest.mark.parametrize("stream", [-1, MAX_STREAM + 1, 1.5, True])
def test_stream_out_of_range_raises(stream):
    with pytest.raises((TypeError, ValueError), match="^stream must be"):
        Draw.at(0, ["a"], [0], [0]).bits(stream)


def test_select_keeps_each_seats_bits_and_agents_in_the_order_given():
    draw = Draw.at(8, AGENTS[:12], [0, 5], [2, 3])
    some = draw.select([11, 0, 6])
    assert some.agents == ("agent_11", "agent_0", "agent_6")
    np.testing.assert_array_equal(some.bits(2), draw.bits(2)[:, [11, 0, 6]])
    np.testing.assert_array_equal(some.select([1, 2]).bits(), draw.bits()[:, [0, 6]])
    for seats in (range(11, -1, -1), [0, 4], [4, 0]):
        np.testing.assert_array_equal(draw.select(seats).bits(), draw.bits()[:, list(seats)])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda draw: draw.select([-1]), ValueError, r"seats\[0\] must be from 0 to 1, got -1"),
        (lambda draw: draw.select([0, 2]), ValueError, r"seats\[1\] must be from 0 to 1, got 2"),
        (lambda draw: draw.select([0.0]), TypeError, r"seats\[0\] must be an integer"),
        (lambda draw: draw.integers(0), ValueError, "high must be from 1"),
        (lambda draw: draw.integers(2**31), ValueError, "high must be from 1"),
        (lambda draw: draw.integers(2.5), TypeError, "high must be an integer"),
        (lambda draw: draw.child(0.5), TypeError, ".*integer"),
        (lambda draw: Draw.at(0, ["a"], [0], [0, 10]), ValueError, "episode must have the shape of env_index"),
        (lambda draw: Draw.at(0, ["a"], [0.7], [0]), TypeError, "env_index must hold integers"),
        (lambda draw: Draw.at(0, ["a"], [0], [-1]), ValueError, "episode must hold integers >= 0"),
        (lambda draw: Draw.at(0, ["a"], 0, 0), ValueError, "env_index must be a vector"),
        (lambda draw: Draw.at(0, ["a"], [0], [0], resample_every=0), ValueError, "resample_every"),
    ],
)
def test_invalid_draw_arguments_raise(call, error, message):
    with pytest.raises(error, match=f"^{message}"):
        call(Draw.at(0, ["a", "b"], [0], [0]))


def test_draw_of_no_environment_is_empty():
    draw = Draw.at(0, ["a", "b"], [], [])
    assert Uniform(4).assign(draw).shape == (0, 2)
    assert draw.env_index.dtype == draw.episode.dtype == np.int64


def test_children_have_different_bits_for_each_key_and_depth():
    draw = Draw.at(8, AGENTS[:2], [0], [0])
    children = [
        draw,
        draw.child("red"),
        draw.child("blue"),
        draw.child(0),
        draw.child(1),
        draw.child("0"),
        draw.child("red").child("red"),
        draw.child("red", "red"),
        draw.child("red").child("blue"),
        draw.child(0, 1),
    ]
    words = [tuple(child.bits(stream)[0].tolist()) for child in children for stream in (0, 1)]
    assert len(set(words)) == len(words)


def test_child_with_agents_has_seats_numbered_from_zero():
    draw = Draw.at(8, AGENTS[:9], [0], [0]).select([5, 6])
    teams = draw.child("teams", agents=["red", "blue", "green"])
    assert (teams.agents, teams.num_seats) == (("red", "blue", "green"), 3)
    same_seats = draw.child("teams")
    np.testing.assert_array_equal(same_seats.bits(), Draw.at(8, AGENTS, [0], [0]).child("teams").bits()[:, [5, 6]])


def test_bits_of_a_child_are_equal_in_every_process_and_for_numpy_integers():
    here = Draw.at(8, ["a"], [0], [0]).child("red", 3).bits().tolist()
    assert Draw.at(8, ["a"], [0], [0]).child("red", np.int64(3)).bits().tolist() == here
    code = "from pz_policymap import Draw; print(Draw.at(8, ['a'], [0], [0]).child('red', 3).bits().tolist())"
    for hash_seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": hash_seed}
        )
        assert run.stdout.strip() == str(here)


def test_env_draw_has_plain_numbers_and_a_generator_that_restarts():
    draw = Draw.at(4, ["a"], [6, 7], [20, 30])
    first, second = draw.environments()
    assert (first.env_index, first.episode, first.block) == (6, 20, 2)
    assert (second.env_index, second.episode, second.block) == (7, 30, 3)
    values = [one.rng.random(5).tolist() for one in draw.environments()]
    assert values == [one.rng.random(5).tolist() for one in draw.environments()]
    assert values[0] != values[1]
    assert type(first.env_index) is type(first.episode) is type(first.block) is int


@pytest.mark.parametrize("seed", [-1, 1.5, None, True, "1", [], [1, -1]])
def test_invalid_seed_raises(seed):
    with pytest.raises((TypeError, ValueError), match="seed"):
        Draw.at(seed, ["a"], [0], [0])


def test_selected_seats_keep_their_bits_in_narrowed_draws():
    whole = Draw.at(3, list("abcdef"), env_index=[0, 1, 2], episode=[4, 5, 6])
    some = whole.select([5, 2])
    np.testing.assert_array_equal(some.only(np.array([2, 0])).bits(), whole.bits()[[2, 0]][:, [5, 2]])
    np.testing.assert_array_equal(some.against(np.array([1, 1, 1])).bits(), whole.bits()[:, [5, 2]])


def test_repr_of_a_draw_is_short_and_shows_seed_agents_and_counters():
    assert repr(Draw.at(3, ["a", "b"], [4], [20])) == "Draw(seed=3, agents=['a', 'b'], env_index=[4], episode=[20])"
    assert len(repr(Draw.at(0, range(1000), range(1000), [0] * 1000))) < 200


def test_env_draw_has_the_agents_and_a_repr_without_addresses():
    (draw,) = Draw.at(0, ["a", "b"], [4], [20]).environments()
    assert repr(draw) == "EnvDraw(agents=('a', 'b'), env_index=4, episode=20, block=2)"
