"""`IsolatedRandomness`: draws inside follow from the seed and leave the draws outside unchanged."""
# ruff: noqa: NPY002  # these are tests of the global generator

import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from pz_policymap.learner.global_generators import IsolatedRandomness


def drawn():
    return random.random(), np.random.rand()


def test_draws_inside_follow_from_the_seed_across_visits():
    reference = random.Random(3), np.random.Generator(np.random.MT19937(3))
    expected = [(reference[0].random(), reference[1].random()) for _ in range(4)]
    own = IsolatedRandomness(3)
    seen = []
    for _ in range(4):
        with own.in_place():
            seen.append(drawn())
        drawn()
    assert seen == expected


def test_draws_outside_are_unchanged_even_after_an_error():
    random.seed(5), np.random.seed(5)
    expected = [drawn() for _ in range(4)]
    random.seed(5), np.random.seed(5)
    own, seen = IsolatedRandomness(0), []
    for _ in range(2):
        seen.append(drawn())
        with own.in_place():
            drawn()
        seen.append(drawn())
        with pytest.raises(ZeroDivisionError), own.in_place():
            drawn()[0] / 0
    assert seen == expected


def test_second_normal_variate_stays_with_its_generator():
    np.random.seed(5), random.seed(5)
    expected = [(np.random.normal(), random.gauss(0, 1)) for _ in range(6)]
    np.random.seed(5), random.seed(5)
    own, seen, inside = IsolatedRandomness(0), [], []
    for _ in range(6):
        seen.append((np.random.normal(), random.gauss(0, 1)))
        with own.in_place():
            inside.append(np.random.normal())
    assert seen == expected
    assert len({*inside, *(variate for variate, _ in seen)}) == 12


def test_generators_seeded_or_replaced_inside_are_restored():
    np.random.seed(5), random.seed(5)
    before, generator = drawn(), np.random.get_bit_generator()
    np.random.seed(5), random.seed(5)
    own = IsolatedRandomness(0)
    with own.in_place():
        np.random.seed(1), random.seed(1)
        np.random.set_bit_generator(np.random.PCG64(3))
    assert np.random.get_bit_generator() is generator
    assert drawn() == before


def test_global_generator_of_another_kind_is_restored():
    usual = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(np.random.PCG64(3))
        expected = [np.random.normal() for _ in range(4)]
        np.random.set_bit_generator(np.random.PCG64(3))
        own, seen = IsolatedRandomness(0), []
        for _ in range(4):
            seen.append(np.random.normal())
            with own.in_place():
                np.random.normal()
        assert seen == expected
    finally:
        np.random.set_bit_generator(usual)


def test_nested_isolations_are_independent():
    alone = [IsolatedRandomness(seed) for seed in (1, 2)]
    expected = []
    for own in alone:
        with own.in_place():
            expected.append([drawn(), drawn()])
    outer, inner = IsolatedRandomness(1), IsolatedRandomness(2)
    with outer.in_place():
        first = drawn()
        with inner.in_place():
            within = [drawn(), drawn()]
        second = drawn()
    assert [[first, second], within] == expected


class FakeTorch(SimpleNamespace):
    """Has the interface of torch's generator, which counts up from its seed."""

    def __init__(self):
        super().__init__(state=1000)

    def get_rng_state(self):
        return self.state

    def set_rng_state(self, state):
        self.state = state

    def Generator(self):  # noqa: N802
        return SimpleNamespace(manual_seed=lambda seed: SimpleNamespace(get_state=lambda: seed))


def test_torch_imported_inside_is_isolated_from_the_next_visit_on(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    own, torch = IsolatedRandomness(7), FakeTorch()
    with own.in_place():
        monkeypatch.setitem(sys.modules, "torch", torch)
        torch.state += 1
    assert torch.state == 1001
    for visit in range(3):
        with own.in_place():
            assert torch.state == 7 + visit
            torch.state += 1
        assert torch.state == 1001
