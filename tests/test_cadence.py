"""`Cadence`, compared with a count from episode 0."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pz_policymap.cadence import Cadence


@given(st.integers(1, 40), st.integers(0, 60))
def test_draws_and_blocks_equal_a_count_episode_by_episode(every, warmup):
    cadence = Cadence(every, warmup)
    episodes = np.arange(200)
    due = [episode % every == 0 or episode < warmup for episode in range(200)]
    assert cadence.due(episodes).tolist() == due
    assert cadence.block(episodes).tolist() == (np.cumsum(due) - 1).tolist()


@pytest.mark.parametrize("episode", [2**31 - 1, 2**31, 2**32, 2**40])
def test_counters_past_32_bits_are_right(episode):
    cadence = Cadence(resample_every=10, warmup_episodes=3)
    around = np.arange(episode - 15, episode + 15)
    assert cadence.due(around).tolist() == [int(e) % 10 == 0 for e in around]
    assert cadence.block(around).tolist() == [int(e) // 10 + 2 for e in around]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"resample_every": 0}, ValueError, r"resample_every must be from 1 to \d+, got 0"),
        ({"resample_every": -3}, ValueError, r"resample_every must be from 1 to \d+, got -3"),
        ({"resample_every": 2.5}, TypeError, "resample_every must be an integer, got 2.5"),
        ({"resample_every": True}, TypeError, "resample_every must be an integer, got True"),
        ({"resample_every": None}, TypeError, "resample_every must be an integer, got None"),
        ({"warmup_episodes": -1}, ValueError, r"warmup_episodes must be from 0 to 4611686018427387904, got -1"),
        ({"warmup_episodes": 2**62 + 1}, ValueError, "warmup_episodes must be from 0 to 4611686018427387904, got"),
        ({"resample_every": 2**62 + 1}, ValueError, "resample_every must be from 1 to 4611686018427387904, got"),
        ({"warmup_episodes": 1.0}, TypeError, "warmup_episodes must be an integer, got 1.0"),
    ],
)
def test_invalid_settings_raise(settings, error, message):
    with pytest.raises(error, match=f"^{message}"):
        Cadence(**settings)


def test_settings_are_kept_in_plain_types_up_to_the_largest():
    assert Cadence(np.int64(2**62), np.int64(2**62)) == Cadence(2**62, 2**62)
    cadence = Cadence(np.int8(3), np.int8(4))
    assert (type(cadence.resample_every), type(cadence.warmup_episodes)) == (int, int)
