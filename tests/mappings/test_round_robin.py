"""`RoundRobin`: every matchup once per cycle, over any number of environments."""

import itertools
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pz_policymap as pm
from pz_policymap import Draw, Focal, PolicyAssigner, Roles, RoundRobin, Shared, Teams, Uniform, assignments
from tests.stub_envs import StubParallel


def agents_of(num_seats):
    return [f"agent_{i}" for i in range(num_seats)]


def played(rule, num_seats, numbers, seed=0):
    """The matchups with these numbers, asked environment by environment and block by block."""
    blocks, envs = np.divmod(np.asarray(numbers), rule.num_envs)
    return rule.assign(Draw.at(seed, agents_of(num_seats), envs, blocks * 10))


def test_environment_and_block_give_the_number_of_the_matchup():
    rule = RoundRobin(3, num_envs=4)
    assigner = PolicyAssigner(rule, agents_of(2), num_envs=4, resample_every=2, seed=0, env_index=0)
    rounds = [assigner.begin_episodes().tolist() for _ in range(6)]
    everything = [list(pair) for pair in itertools.product(range(3), repeat=2)]
    assert (
        rounds
        == [
            everything[:4],
            everything[:4],
            everything[4:8],
            everything[4:8],
            [everything[8], *everything[:3]],  # the ninth, and the next cycle
            [everything[8], *everything[:3]],
        ]
    )


ENUMERATED = {
    (True, True): lambda policies, seats: itertools.product(policies, repeat=seats),
    (True, False): itertools.permutations,
    (False, True): itertools.combinations_with_replacement,
    (False, False): itertools.combinations,
}


@settings(max_examples=120, deadline=None)
@given(
    policies=st.lists(st.integers(0, 99), min_size=1, max_size=5, unique=True),
    num_seats=st.integers(1, 4),
    num_envs=st.integers(1, 7),
    order=st.sampled_from(["lexicographic", "seeded"]),
    kind=st.sampled_from(sorted(ENUMERATED)),
    cycle=st.integers(0, 3),
)
def test_a_full_cycle_holds_every_matchup_once(policies, num_seats, num_envs, order, kind, cycle):
    rule = RoundRobin(policies, num_envs, order, ordered_seats=kind[0], self_matches=kind[1])
    expected = Counter(ENUMERATED[kind](policies, num_seats))
    size = rule.num_matchups(num_seats)
    assert size == expected.total()
    if size:
        found = played(rule, num_seats, np.arange(size) + cycle * size)
        assert Counter(map(tuple, found.tolist())) == expected
        if order == "lexicographic":
            assert list(map(tuple, found.tolist())) == list(ENUMERATED[kind](policies, num_seats))


@pytest.mark.parametrize(
    ("rule", "num_seats", "matchups", "blocks"),
    [
        (RoundRobin(50), 4, 6_250_000, 6_250_000),
        (RoundRobin(50, 64), 4, 6_250_000, 97_657),  # 97,656.25
        (RoundRobin(4, 4), 2, 16, 4),
        (RoundRobin(4, 5), 2, 16, 4),
        (RoundRobin(4, 100), 2, 16, 1),
        (RoundRobin(4, self_matches=False), 2, 12, 12),
        (RoundRobin(4, ordered_seats=False), 2, 10, 10),
        (RoundRobin(4, self_matches=False, ordered_seats=False), 2, 6, 6),
        (RoundRobin([7, 8, 9], 2), 3, 27, 14),
    ],
)
def test_num_matchups_and_num_blocks_count_a_cycle(rule, num_seats, matchups, blocks):
    assert rule.num_matchups(num_seats) == matchups
    assert rule.num_blocks(num_seats) == blocks


def test_num_blocks_suffice_for_all_matchups_in_any_order_of_environments():
    rule = RoundRobin(4, num_envs=3, order="seeded", self_matches=False, ordered_seats=False)
    fns = pm.env_fns(StubParallel, 3, rule, resample_every=1, seed=9)
    met = set()
    for fn in reversed(fns):
        env = fn()
        for _ in range(rule.num_blocks(num_seats=2)):
            env.reset()
            met.add(tuple(env.policy_ids.values()))
    assert met == set(itertools.combinations(range(4), 2))


def test_seeded_order_differs_between_seeds_and_cycles():
    rule = RoundRobin(6, order="seeded")
    orders = [played(rule, 2, np.arange(36) + cycle * 36, seed).tolist() for seed in (0, 1) for cycle in (0, 1)]
    for first, second in itertools.combinations(orders, 2):
        assert sum(a == b for a, b in zip(first, second, strict=True)) < 9
    assert played(rule, 2, np.arange(36)).tolist() == orders[0]


def test_millions_of_matchups_are_neither_built_nor_stored():
    rule = RoundRobin(50, num_envs=16, order="seeded")
    agents = agents_of(4)
    tracemalloc.start()
    assigner = PolicyAssigner(rule, agents, num_envs=16, resample_every=1, seed=0, env_index=0)
    seen = {tuple(matchup) for _ in range(50) for matchup in assigner.begin_episodes().tolist()}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(seen) == 800
    assert peak < 6_250_000 / 8  # a list of them would take a bit each, at the very least


def test_part_of_a_cycle_of_millions_repeats_no_matchup():
    found = played(RoundRobin(50, order="seeded"), 4, np.arange(100_000) + 3_000_000)
    assert len({tuple(matchup) for matchup in found.tolist()}) == 100_000


@pytest.mark.parametrize("order", ["lexicographic", "seeded"])
def test_2_to_the_63_matchups_are_served(order):
    rule = RoundRobin(2, order=order)
    PolicyAssigner(rule, agents_of(63), seed=0, env_index=0)
    found = played(rule, 63, [0, 1, 2, 2**40])
    assert len({tuple(matchup) for matchup in found.tolist()}) == 4
    if order == "lexicographic":
        assert found @ (2.0 ** np.arange(62, -1, -1)) == pytest.approx([0, 1, 2, 2**40])


@pytest.mark.parametrize(
    ("rule", "num_seats"),
    [
        (RoundRobin(2), 64),
        (RoundRobin(10**6, order="seeded"), 4),
        (RoundRobin(100, self_matches=False), 20),
        (RoundRobin(1000, ordered_seats=False), 9),
        (RoundRobin(1000, self_matches=False, ordered_seats=False), 9),
    ],
)
def test_more_than_2_to_the_63_matchups_raise(rule, num_seats):
    size = rule.num_matchups(num_seats)
    assert size > 2**63
    with pytest.raises(ValueError, match=rf"policies must make at most 2\*\*63 matchups, got {size}"):
        PolicyAssigner(rule, agents_of(num_seats), seed=0, env_index=0)
    with pytest.raises(ValueError, match="at most"):
        played(rule, num_seats, [0])


def test_round_robin_works_inside_teams_and_roles():
    agents = ["red_0", "blue_0", "red_1", "blue_1"]
    draw = Draw.at(0, agents, np.zeros(9, int), np.arange(9) * 10)
    teams = Teams(RoundRobin(3)).assign(draw)
    assert (teams[:, :2] == teams[:, 2:]).all()
    assert teams[:, :2].tolist() == [list(pair) for pair in itertools.product(range(3), repeat=2)]
    roles = Roles({"red": RoundRobin(3), "blue": RoundRobin([7, 8], ordered_seats=False)}).assign(draw)
    assert roles[:, [0, 2]].tolist() == teams[:, :2].tolist()
    assert roles[:4, [1, 3]].tolist() == [[7, 7], [7, 8], [8, 8], [7, 7]]


@pytest.mark.parametrize("around", [lambda rule: rule, Teams, lambda rule: Focal(Uniform(2), rule)])
def test_warmup_episodes_raise(around):
    rule = around(RoundRobin(3))
    with pytest.raises(ValueError, match=r"warmup_episodes must be 0 for .*RoundRobin.*, got 2"):
        PolicyAssigner(rule, agents_of(2), warmup_episodes=2, seed=0, env_index=0)
    assigner = PolicyAssigner(Uniform(3), agents_of(2), warmup_episodes=2, seed=0, env_index=0)
    with pytest.raises(ValueError, match="warmup_episodes must be 0"):
        assigner.set_mapping(rule)
    assert assigner.mapping == Uniform(3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seed": 0}, "env_index must be the index of this environment for RoundRobin"),
        ({"env_index": 0}, "seed must be given for RoundRobin"),
        ({"seed": 0, "env_index": 2}, "env_index must be below num_envs=2 of RoundRobin.*, got 2"),
    ],
)
def test_missing_env_index_or_seed_raises(given, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        PolicyAssigner(RoundRobin(3, num_envs=2), agents_of(2), **given)


def test_unknown_seats_raise():
    env = pm.wrap(StubParallel(possible_agents=None), RoundRobin(3), seed=0, env_index=0)
    with pytest.raises(
        ValueError, match="RoundRobin.* needs to know all seats, but the environment has no possible_agents"
    ):
        env.reset()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RoundRobin(0), ValueError, "policies must be from 1"),
        (lambda: RoundRobin([1, 1]), ValueError, "policies must be distinct"),
        (lambda: RoundRobin(3, 0), ValueError, "num_envs must be at least 1, got 0"),
        (lambda: RoundRobin(3, 1.5), TypeError, "num_envs must be an integer, got 1.5"),
        (lambda: RoundRobin(3, order="random"), ValueError, "order must be 'lexicographic' or 'seeded', got 'random'"),
        (lambda: RoundRobin(3).num_matchups(0), ValueError, "num_seats must be at least 1, got 0"),
        (lambda: RoundRobin(3).num_blocks("2"), TypeError, "num_seats must be an integer, got '2'"),
        (
            lambda: PolicyAssigner(RoundRobin(2, self_matches=False), agents_of(3), seed=0, env_index=0),
            ValueError,
            "self_matches=False needs at least one policy per seat, got 2 policies for 3 seats",
        ),
    ],
)
def test_invalid_settings_raise_at_construction(make, error, message):
    with pytest.raises(error, match=f"^{message}"):
        make()


@pytest.mark.parametrize("api", ["wrap", "assigner"])
@pytest.mark.parametrize("around", [lambda rule: rule, Teams], ids=["itself", "teams"])
@pytest.mark.parametrize("order", ["lexicographic", "seeded"])
def test_single_environment_visits_each_of_20_matchups_5_times_in_100_episodes(order, around, api):
    rule = around(RoundRobin(5, self_matches=False, order=order))
    options = {} if order == "lexicographic" else {"seed": 3}  # neither env_index nor, without a random order, a seed
    if api == "wrap":
        env = pm.wrap(StubParallel([("a_0", "b_0")], possible_agents=("a_0", "b_0")), rule, **options)
        games = [tuple(env.reset() and env.policy_ids.values()) for _ in range(100)]
    else:
        assigner = PolicyAssigner(rule, ["a_0", "b_0"], **options)
        games = [tuple(assigner.begin_episodes()[0].tolist()) for _ in range(100)]
    assert Counter(games) == dict.fromkeys(itertools.permutations(range(5), 2), 5)


def test_seeded_order_in_a_single_environment_needs_a_seed():
    with pytest.raises(ValueError, match="^seed must be given for RoundRobin"):
        PolicyAssigner(RoundRobin(5, order="seeded"), ["a", "b"])


def test_each_episode_is_a_block_by_default():
    assigner = PolicyAssigner(RoundRobin(2), ["a", "b"])
    assert [assigner.begin_episodes().tolist()[0] for _ in range(5)] == [[0, 0], [0, 1], [1, 0], [1, 1], [0, 0]]
    drawn = assignments(RoundRobin(2), ["a", "b"], seed=0, episode=[0, 1, 2, 3])
    assert drawn.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert PolicyAssigner(RoundRobin(2), ["a", "b"], resample_every=10).cadence.resample_every == 10
    assert PolicyAssigner(Shared(RoundRobin(2)), ["a", "b"]).cadence.resample_every == 1
