"""Sums that do not depend on the order of addition."""

import math
import random
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from pz_policymap.results.sums import added


class TestSums:
    @given(st.lists(st.floats(-1e6, 1e6).filter(lambda x: x == 0.0 or abs(x) > 1e-3), max_size=200))
    @example([0.1] * 10)
    @example([1e16, 1.0, -1e16])
    def test_sum_in_any_order_is_the_exact_one_rounded(self, values):
        for order in (values, values[::-1], random.Random(0).sample(values, len(values))):
            total, rest = 0.0, 0.0
            for value in order:
                total, rest = added(total, rest, value)
            assert total == math.fsum(values)
            assert Fraction(total) + Fraction(rest) == sum(map(Fraction, values))
