"""Games of each policy."""

import pz_policymap as pm
from pz_policymap.evaluation.standings import standings


def test_standings_sum_over_opponents():
    payoff = pm.Payoff(3)
    for policies, returns in (([0, 1], [1, 0]), ([0, 1], [0, 0]), ([0, 2], [0, 1]), ([0, 0], [1, 0])):
        payoff.record(pm.Episode(policies, returns))
    assert standings(payoff)[0] == (3, 1, 1, 1, 0.5)
