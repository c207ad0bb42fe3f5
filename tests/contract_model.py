"""A second, minimal implementation of the contract, against which the tests compare the package.

Draws of `Uniform`, `Weighted` and their combinations are computed from NumPy's Philox. Mappings with separate bits or
seats (`Teams`, `Roles`, `Focal`, `PerWorker`, `Balanced`) are called for one environment at a time, and checked by
the tests named after it.

`Model` holds the assignments of one environment; the numbers of the latest draw are its whole state.
`ledger` computes results from finished episodes. The machines in `test_model_*.py` compare the package with
them.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate, combinations
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import pz_policymap as pm
from pz_policymap.randomness.philox import SALT, Source

NUM_POLICIES = 40
NUM_ENVS = 64  # of rules that span environments
NAMES = ["red_0", "blue_0", "red_1", "blue_1", "grey"]
TEAMS = {"red_0": "red", "red_1": "red", "blue_0": "blue", "blue_1": "blue", "grey": "grey"}

# What changes meanwhile: the weights that callables return, and whether a function of ours fails.
KNOBS = {"weights": [1, 2, 3], "fails": False}


def turn(weights=(1, 2, 3), fails=False):
    KNOBS.update(weights=list(weights), fails=fails)


def current_weights():
    return KNOBS["weights"]


def current_rows():
    return [KNOBS["weights"], KNOBS["weights"][::-1], KNOBS["weights"]]


def counted(agents, draw):
    """A mapping function whose policies follow from the numbers of the draw."""
    if KNOBS["fails"]:
        raise RuntimeError("as planned")
    return {a: (draw.env_index + 3 * draw.episode + 7 * draw.block + i) % NUM_POLICIES for i, a in enumerate(agents)}


LEAVES = [
    pm.Uniform(NUM_POLICIES),
    pm.Uniform([7, 3, 39]),
    pm.Uniform(NUM_POLICIES, mix=False),
    pm.Uniform(12, replace=False),
    pm.Weighted([1, 2, 7]),
    pm.Weighted(current_weights),
    pm.Weighted(current_weights, policies=[30, 31, 32]),
    pm.Fixed(3),
    pm.Fixed({name: i for i, name in enumerate([*NAMES, "red", "blue", "agent", *(f"agent_{i}" for i in range(5))])}),
    pm.ByEnvIndex(5),
    pm.FromFunction(counted),
    pm.PerWorker(6, policies_per_worker=3, envs_per_worker=4),
    pm.Balanced(6, num_envs=NUM_ENVS),
    pm.Balanced(3, num_envs=NUM_ENVS, weights=[0.5, 0.3, 0.2]),
    pm.RoundRobin(4, num_envs=NUM_ENVS),
    pm.RoundRobin(6, num_envs=NUM_ENVS, order="seeded", self_matches=False, ordered_seats=False),
]
MATRICES = [pm.Weighted([[1, 0, 2], [0, 1, 0], [3, 4, 5]]), pm.Weighted(current_rows)]


def team(agent):
    """Returns the name of an agent, or of a team where mappings of teams are nested, without its number."""
    return str(agent).rstrip("0123456789").rstrip("_") or agent


def teams(inner):
    return pm.Teams(inner, team_of=team)


def _around(inner):
    rotate = st.booleans()
    return st.one_of(
        inner.map(pm.Shared),
        inner.map(teams),
        st.tuples(inner, inner).map(lambda two: pm.Roles(dict(zip(["red", "blue", "grey", "agent"], two * 2)))),  # noqa: B905
        st.builds(pm.Focal, inner, inner, rotate=rotate),
        st.builds(pm.Focal, st.just(pm.Uniform(3)), st.sampled_from(MATRICES), rotate=rotate),
    )


ANY = st.recursive(st.sampled_from(LEAVES), _around, max_leaves=4)
READERS = [*LEAVES[5:7], pm.FromFunction(counted), teams(pm.Weighted(current_weights))]  # of what changes meanwhile
RULES = st.one_of(ANY, ANY, st.sampled_from(READERS))


def inside(rule):
    """Returns the rules that a rule nests."""
    settings = [
        part for value in vars(rule).values() for part in (value.values() if isinstance(value, dict) else [value])
    ]
    return [part for part in settings if isinstance(part, pm.PolicyMapping)]


def parts(rule):
    """Yields a rule and all that is in it."""
    yield rule
    for inner in inside(rule):
        yield from parts(inner)


def needs_all_seats(rule):
    if isinstance(rule, (pm.Balanced, pm.RoundRobin)):
        return True
    return not isinstance(rule, pm.Shared) and (
        getattr(rule, "rotate", False) or any(map(needs_all_seats, inside(rule)))
    )


def reads_weights(rule):
    return isinstance(rule, pm.Weighted) and callable(rule.weights)


def fits(rule, *, pinned, warmup, env_index, last):
    """Whether an environment (with a vector: environments up to `last`) can follow this rule."""
    for part in parts(rule):
        if isinstance(part, (pm.PerWorker, pm.Balanced, pm.RoundRobin)) and not pinned:
            return False
        if isinstance(part, (pm.PerWorker, pm.Balanced, pm.RoundRobin, pm.ByEnvIndex)) and env_index is None:
            return False
        if isinstance(part, (pm.Balanced, pm.RoundRobin)) and last >= NUM_ENVS:
            return False
        if isinstance(part, pm.RoundRobin) and warmup:
            return False
    return True


def shares(at, seats):
    """One number in [0, 1) per seat, from NumPy's Philox at the counter (env index, seat // 4, episode, stream 0)."""
    seed = at.seed if isinstance(at.seed, (list, tuple)) else [at.seed]
    key = np.random.SeedSequence([*seed, SALT]).generate_state(2, np.uint64)
    words = []
    for group in range(-(-seats // 4)):
        before = (at.env_index + (group << 64) + (at.episode << 128) - 1) % 2**256  # it increments first
        words += np.random.Philox(key=key, counter=before).random_raw(4).tolist()
    return [(word >> 11) / 2**53 for word in words[:seats]]


def plays(rule, at, seats):  # noqa: PLR0911
    """The policy of every seat of one environment, from the numbers of the draw."""
    n = len(seats)
    if isinstance(rule, pm.Uniform):
        deck = list(range(rule.policies) if isinstance(rule.policies, int) else rule.policies)
        if rule.replace:
            return [deck[int(share * len(deck))] for share in shares(at, n if rule.mix else 1)] * (1 if rule.mix else n)
        for seat, share in enumerate(shares(at, n)):
            taken = seat + int(share * (len(deck) - seat))
            deck[seat], deck[taken] = deck[taken], deck[seat]
        return deck[:n]
    if isinstance(rule, pm.Weighted) and np.ndim(weights := _now(rule.weights)) == 1:
        if np.isnan(weights).any():
            raise ValueError("as planned")
        limits = list(accumulate(weights))
        picks = [bisect_right(limits, share * limits[-1]) for share in shares(at, n)]
        return picks if rule.policies is None else [rule.policies[pick] for pick in picks]
    if isinstance(rule, pm.Fixed):
        return [rule.policy if isinstance(rule.policy, int) else rule.policy[seat] for seat in seats]
    if isinstance(rule, pm.ByEnvIndex):
        return [at.env_index % rule.policies] * n
    if isinstance(rule, pm.FromFunction):
        return [counted(seats, at)[seat] for seat in seats]
    if isinstance(rule, pm.Shared):
        return plays(rule.mapping, at, seats[:1]) * n
    if isinstance(rule, pm.RoundRobin) and rule.order == "lexicographic":
        number = at.block * rule.num_envs + at.env_index
        return [number // rule.policies**place % rule.policies for place in reversed(range(n))]
    # Other mappings have separate bits or seats, or a seeded permutation: call the mapping for this environment only.
    blocks = SimpleNamespace(block=lambda episode: np.full_like(episode, at.block))
    numbers = np.array([at.env_index]), np.array([at.episode])
    return rule.assign(pm.Draw(Source(at.seed), tuple(seats), *numbers, blocks))[0].tolist()


def _now(weights):
    return weights() if callable(weights) else weights


class Model:
    """The assignments of one environment. `agents` is None if agents are generated during episodes."""

    def __init__(self, rule, agents, every, warmup, seed, env_index):
        self.rule, self.agents, self.every, self.warmup = rule, agents, every, warmup
        self.seed, self.pinned, self.env_index = seed, seed is not None, env_index
        self.episode, self.draw_episode, self.redraw = -1, -1, None
        self.drawn, self.forced, self.there = {}, {}, []
        self.unfinished = False

    def due(self, episode):
        return episode % self.every == 0 or episode < self.warmup

    def reset(self, seed=None, live=(), forced=None):
        """Begins an episode; if it raises, none has begun."""
        after = copy.copy(self)
        if seed is not None and not self.pinned:
            after.seed, after.episode, after.draw_episode, after.redraw = seed, -1, -1, None
        after.episode += 1
        asked = after.redraw is not None and after.episode >= after.redraw
        if asked or (self.due(after.episode) and after.draw_episode != after.episode):
            after.draw_episode, after.drawn_by, after.drawn, after.redraw = after.episode, self.rule, {}, None
            after.weights = KNOBS["weights"]
            after.named = after.drawn_by, after.weights  # saved in a state
            if np.isnan(after.weights).any() and any(map(reads_weights, parts(self.rule))):
                raise ValueError("as planned")  # called even if no seat needs them
            if self.agents is None and needs_all_seats(self.rule):
                raise ValueError("it needs to know all seats")
            after._draw(self.agents or live)
        after.forced, after.there, after.unfinished = dict(forced or {}), list(self.agents or []), True
        after.appear(live)
        vars(self).update(vars(after))

    def appear(self, agents):
        """New agents get the policies that they would have had from the start; all others are unchanged."""
        self._draw(agents)
        self.there = [*self.there, *(agent for agent in agents if agent not in self.there)]

    def _draw(self, agents):
        late = [agent for agent in agents if agent not in self.drawn]
        if not late:
            return
        if self.drawn and needs_all_seats(self.drawn_by):
            raise ValueError("it needs to know all seats")
        seats = [*self.drawn, *late]
        block = sum(map(self.due, range(self.draw_episode + 1))) - 1
        at = SimpleNamespace(seed=self.seed, env_index=self.env_index, episode=self.draw_episode, block=block)
        now = KNOBS["weights"]
        KNOBS["weights"] = now if self.weights is None else self.weights
        try:
            policies = plays(self.drawn_by, at, seats)
        finally:
            KNOBS["weights"] = now
        self.drawn = {**dict(zip(seats, policies, strict=True)), **self.drawn}

    def set_mapping(self, rule, now):
        self.rule = rule
        if now:
            self.redraw = self.episode + 1

    def load(self):
        """Resumes from its own state in another object: an unfinished episode is repeated."""
        self.episode -= self.unfinished
        self.unfinished, self.pinned = False, self.seed is not None
        if self.drawn:  # a replaced mapping is identified by its text only
            self.drawn_by, self.weights = self.named if self.named[0] == self.rule else (self.rule, None)

    @property
    def policy_ids(self):
        return {**{agent: self.drawn[agent] for agent in self.there}, **self.forced}


class Score:
    """The returns and lengths of the agents of a running episode."""

    def __init__(self, agents):
        self.returns, self.lengths = dict.fromkeys(agents, Fraction(0)), dict.fromkeys(agents, 0)

    def step(self, acting, rewards):
        for agent, reward in rewards.items():
            self.returns[agent] = self.returns.get(agent, 0) + Fraction(reward)
        for agent in acting:
            self.lengths[agent] = self.lengths.get(agent, 0) + 1

    def episode(self, policy_ids):
        return {a: (policy_ids[a], float(r), self.lengths.get(a, 0)) for a, r in self.returns.items()}


def ledger(episodes, team_of):
    """The matrices of wins, draws, episodes and mean returns, from the contract's paragraph on results."""
    wins, draws, shared = (np.zeros((NUM_POLICIES, NUM_POLICIES), int) for _ in range(3))
    total = np.zeros((NUM_POLICIES, NUM_POLICIES), object)
    for episode in episodes:
        seats = {}
        teams = {}
        for agent, (policy, value, _) in episode.items():
            side = agent if team_of is None else team_of[agent]
            seats.setdefault(policy, []).append((side, Fraction(value)))
            teams.setdefault(side, []).append(Fraction(value))
        mean = {side: sum(values) / len(values) for side, values in teams.items()}
        for one, other in combinations(seats, 2):
            leads = [
                (mean[mine] > mean[theirs]) - (mean[mine] < mean[theirs])
                for mine, _ in seats[one]
                for theirs, _ in seats[other]
                if mine != theirs
            ]
            if leads:
                won = sum(leads)
                wins[one, other] += won > 0
                wins[other, one] += won < 0
                draws[one, other] += won == 0
                draws[other, one] += won == 0
        for one, mine in seats.items():
            for other in seats:
                if one != other or len(mine) > 1:
                    shared[one, other] += 1
                    total[one, other] += sum(value for _, value in mine) / len(mine)
    means = np.full(shared.shape, np.nan)
    for place in zip(*np.nonzero(shared), strict=True):
        means[place] = float(total[place] / int(shared[place]))
    return wins, draws, shared, means
