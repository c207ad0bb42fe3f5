"""Cost of recording an episode, and of numbering a matchup, in a large population."""

from itertools import cycle

import numpy as np

from pz_policymap import Draw, Episode, Payoff, RoundRobin

SEATS = [f"agent_{i}" for i in range(8)]


def recorder(num_policies):
    rng = np.random.default_rng(0)
    episodes = cycle(
        [
            Episode(rng.permutation(num_policies)[: len(SEATS)].tolist(), rng.standard_normal(len(SEATS)).tolist())
            for _ in range(1000)
        ]
    )
    payoff = Payoff(num_policies)
    return lambda: payoff.record(next(episodes))


def test_recording_costs_the_same_in_any_population(side_by_side, report):
    many, few = side_by_side(recorder(1000), recorder(10), rounds=101)
    report("Payoff.record, 1,000 policies, 8 seats", "the same, 10 policies", many / few, 1.5, 3)


def test_a_tournament_keeps_no_list_of_its_matchups(side_by_side, report):
    draw = Draw.at(0, SEATS[:4], np.arange(100), np.zeros(100, np.int64))
    large, small = (RoundRobin(policies, num_envs=100, order="seeded") for policies in (50, 5))
    times = side_by_side(lambda: large.assign(draw), lambda: small.assign(draw), rounds=51)
    what = "RoundRobin in a seeded order, 6,250,000 matchups of 4 seats"
    report(what, "the same, 625 matchups", times[0] / times[1], 1.5, 10)
