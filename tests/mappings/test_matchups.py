"""Matchups by number, held against Python's itertools, which enumerates them in lexicographic order."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pz_policymap.mappings.matchups import count_matchups, matchups

ENUMERATED = {
    (True, True): lambda policies, seats: itertools.product(range(policies), repeat=seats),
    (True, False): lambda policies, seats: itertools.permutations(range(policies), seats),
    (False, True): lambda policies, seats: itertools.combinations_with_replacement(range(policies), seats),
    (False, False): lambda policies, seats: itertools.combinations(range(policies), seats),
}
KINDS = pytest.mark.parametrize(("ordered_seats", "self_matches"), ENUMERATED)


@KINDS
@pytest.mark.parametrize(
    ("policies", "seats"), [(1, 1), (1, 3), (2, 2), (3, 2), (3, 3), (5, 3), (4, 4), (6, 5), (2, 6)]
)
def test_matchups_are_numbered_in_lexicographic_order(policies, seats, ordered_seats, self_matches):
    expected = list(map(list, ENUMERATED[ordered_seats, self_matches](policies, seats)))
    assert count_matchups(policies, seats, ordered_seats, self_matches) == len(expected)
    if expected:
        found = matchups(np.arange(len(expected)), policies, seats, ordered_seats, self_matches)
        assert found.tolist() == expected


@pytest.mark.parametrize(
    ("policies", "seats", "ordered_seats", "self_matches"),
    [
        (50, 4, True, True),
        (1000, 6, True, True),
        (2, 62, True, True),
        (1000, 6, True, False),
        (20, 20, True, False),
        (1000, 7, False, True),
        (2, 40, False, True),
        (1000, 7, False, False),
        (63, 33, False, False),
        (300, 299, False, False),
    ],
)
def test_first_and_last_of_very_many_matchups_are_exact(policies, seats, ordered_seats, self_matches):
    last = count_matchups(policies, seats, ordered_seats, self_matches) - 1
    found = matchups(np.array([0, last]), policies, seats, ordered_seats, self_matches).tolist()
    if self_matches:
        assert found == [[0] * seats, [policies - 1] * seats]
    else:
        highest = list(range(policies - seats, policies))
        assert found == [list(range(seats)), highest[::-1] if ordered_seats else highest]


def rank(policies_of, num_policies, ordered_seats, self_matches):
    """The number of a matchup, counted place by place: how many matchups begin as it does but with a lower policy."""
    number, taken = 0, []
    seats = len(policies_of)
    for seat, policy in enumerate(policies_of):
        left = seats - seat - 1
        lowest = 0 if ordered_seats or not taken else taken[-1] + (not self_matches)
        for lower in range(lowest, policy):
            if ordered_seats:
                if not self_matches and lower in taken:
                    continue
                number += num_policies**left if self_matches else math.perm(num_policies - len(taken) - 1, left)
            else:
                above = num_policies - lower - (not self_matches)
                number += math.comb(above + left - 1, left) if self_matches else math.comb(above, left)
        taken.append(policy)
    return number


@settings(max_examples=200, deadline=None)
@given(
    policies=st.integers(1, 60),
    seats=st.integers(1, 8),
    kind=st.sampled_from(sorted(ENUMERATED)),
    share=st.fractions(0, 1),
)
def test_number_of_a_matchup_round_trips(policies, seats, kind, share):
    count = count_matchups(policies, seats, *kind)
    if count:
        number = math.floor(share * (count - 1))
        found = matchups(np.array([number]), policies, seats, *kind)[0].tolist()
        assert rank(found, policies, *kind) == number


def test_fifty_policies_in_four_seats_make_6250000_matchups():
    assert count_matchups(50, 4, ordered_seats=True, self_matches=True) == 6_250_000


def test_matchup_numbers_up_to_2_to_the_63_are_exact():
    assert matchups(np.array([2**63 - 1, 2**62]), 2, 63, True, True).tolist() == [[1] * 63, [1] + [0] * 62]
