"""Episodes, ledgers and the contract of games, shared by the tests of results."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import pz_policymap as pm

WIN, LOSS, DRAW = [1.0, -1.0], [-1.0, 1.0], [0.0, 0.0]


returns = st.one_of(st.integers(-3, 3).map(float), st.sampled_from([0.1, 0.2, 0.3, 1e-9]), st.floats(-1e6, 1e6))


coarse = st.integers(-(2**26), 2**26).map(lambda x: x / 64.0)  # within the nine orders of magnitude that sums promise


@st.composite
def episodes(draw, num_policies=4, max_seats=6, returns=returns):
    seats = draw(st.integers(1, max_seats))

    def each(values):
        return draw(st.lists(values, min_size=seats, max_size=seats))

    return pm.Episode(
        policies=each(st.integers(0, num_policies - 1)),
        returns=each(returns),
        lengths=each(st.integers(0, 100)),
        sides=draw(st.one_of(st.just(()), st.lists(st.sampled_from("rgb"), min_size=seats, max_size=seats))),
    )


def ledger(results, num_policies=2, **settings):
    """A ledger of games between policy 0 and policy 1."""
    payoff = pm.Payoff(num_policies, **settings)
    for result in results:
        payoff.record(pm.Episode([0, 1], result))
    return payoff


def record_episodes(payoff, rng, episodes, seats, team_size, skill):
    """Records episodes of distinct random policies. The strongest side wins with the odds of its skill."""
    sides = [seat // team_size for seat in range(seats)]
    matchups = np.argsort(rng.random((episodes, len(skill))), axis=1)[:, :seats]
    strength = skill[matchups].reshape(episodes, -1, team_size).sum(axis=2)
    scores = (strength + rng.gumbel(size=strength.shape)).repeat(team_size, axis=1)
    for policies, returns in zip(matchups.tolist(), scores.tolist(), strict=True):
        payoff.record(pm.Episode(policies, returns, sides=sides))


def contract(episode):
    """The games of an episode by the literal definition, in exact numbers: {(i, j): sign} per ordered pair."""
    seats = range(len(episode.policies))
    mean = {}
    for side in episode.sides:
        scores = [Fraction(episode.scores[s]) for s in seats if episode.sides[s] == side]
        mean[side] = sum(scores) / len(scores)
    found = {}
    for i in set(episode.policies):
        for j in set(episode.policies) - {i}:
            signs = [
                (mean[episode.sides[s]] > mean[episode.sides[t]]) - (mean[episode.sides[s]] < mean[episode.sides[t]])
                for s in seats
                for t in seats
                if episode.policies[s] == i and episode.policies[t] == j and episode.sides[s] != episode.sides[t]
            ]
            if signs:
                total = sum(signs)
                found[i, j] = (total > 0) - (total < 0)
    return found


def as_pairs(found):
    policies = found.policies.tolist()
    return {
        (i, j): int(found.results[a, b])
        for a, i in enumerate(policies)
        for b, j in enumerate(policies)
        if found.played[a, b]
    }


def played(ledger_of, seed, count, num_policies=3):
    """A ledger after some episodes."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        ledger_of.record(pm.Episode(rng.integers(0, num_policies, 3), rng.normal(size=3), rng.integers(1, 9, 3)))
    return ledger_of


def same(one, other):
    mine, theirs = one.state_dict(), other.state_dict()
    return mine.keys() == theirs.keys() and all(np.array_equal(mine[key], theirs[key]) for key in mine)
