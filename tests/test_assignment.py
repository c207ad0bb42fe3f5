"""`assignments`: the pure function equals what every wrapper assigns."""

import pickle

import numpy as np
import pytest
from mpe2 import simple_tag_v3
from supersuit import concat_vec_envs_v1, pad_observations_v0, pettingzoo_env_to_vec_env_v1

import pz_policymap as pm

AGENTS = tuple(simple_tag_v3.parallel_env().possible_agents)
EPISODES = 12
MAPPINGS = [
    pm.Uniform(4),
    pm.Uniform([4, 6, 9, 11], replace=False),
    pm.Weighted([0.7, 0.0, 0.3]),
    pm.Weighted(lambda: [1.0, 2.0, 3.0]),
    pm.Fixed(3),
    pm.ByEnvIndex(3),
    pm.Shared(pm.Uniform(5)),
    pm.Teams(pm.Uniform(5)),
    pm.Roles({"adversary": pm.Uniform([4, 5]), "agent": pm.Uniform(4)}),
    pm.Focal(pm.Fixed(0), pm.Weighted([0, 3, 1, 1])),
    pm.Focal(pm.Uniform([0, 1]), pm.Weighted([[0, 0, 1, 1], [1, 1, 0, 0]])),
    pm.PerWorker(8, policies_per_worker=2, envs_per_worker=2),
    pm.Balanced(3, num_envs=8),
    pm.RoundRobin(3, num_envs=8, order="seeded"),
    pm.FromFunction(lambda agents, draw: {agent: int(draw.rng.integers(5)) for agent in agents}),
]
CADENCES = [{"resample_every": 1}, {"resample_every": 3}, {"resample_every": 3, "warmup_episodes": 2}]


def table(mapping, cadence, env_index, seed=7):
    return pm.assignments(
        mapping, AGENTS, seed=seed, env_index=env_index, episode=np.arange(EPISODES)[:, None], **cadence
    )


def settings(mapping):
    """Yields the cadences that a mapping accepts: a schedule has no warm-up."""
    return [cadence for cadence in CADENCES if not (isinstance(mapping, pm.RoundRobin) and len(cadence) > 1)]


SETTLED = [  # mappings that agents may join mid-episode
    *(
        m
        for m in MAPPINGS
        if not (m.needs_all_seats or isinstance(m, pm.FromFunction) or getattr(m, "replace", 1) is False)
    ),
    pm.Uniform(60, replace=False),
    pm.Uniform(4, mix=False),
    pm.Focal(pm.Fixed(0), pm.Shared(pm.Uniform(5)), num_focal=2, rotate=False),
    pm.Roles({"adversary": pm.Uniform(9), "agent": pm.Teams(pm.Uniform(4), lambda agent: int(agent[-1]))}),
]
CROWD = [f"{name}_{number}" for number in range(25) for name in ("adversary", "agent")]
CASES = [pytest.param(m, c, id=f"{type(m).__name__}{i}-{'-'.join(map(str, c.values()))}")
         for i, m in enumerate(MAPPINGS) for c in settings(m)]  # fmt: skip


@pytest.mark.parametrize(("mapping", "cadence"), CASES)
def test_env_fns_assign_the_same(mapping, cadence):
    expected = table(mapping, cadence, [0, 1, 2])
    for index, fn in enumerate(pm.env_fns(simple_tag_v3.parallel_env, 3, mapping, seed=7, **cadence)):
        env = fn()
        for episode in range(EPISODES):
            env.reset()
            assert list(env.policy_ids.values()) == expected[episode, index].tolist()


@pytest.mark.parametrize(("mapping", "cadence"), CASES)
@pytest.mark.parametrize("make", [simple_tag_v3.env, simple_tag_v3.parallel_env])
def test_wrap_assigns_the_same(make, mapping, cadence):
    expected = table(mapping, cadence, 5)
    env = pm.wrap(make(), mapping, seed=7, env_index=5, **cadence)
    for episode in range(EPISODES):
        env.reset(seed=episode)
        assert list(env.policy_ids.values()) == expected[episode, 0].tolist()


@pytest.mark.parametrize(("mapping", "cadence"), CASES)
def test_a_vector_environment_assigns_the_same(mapping, cadence):
    expected = table(mapping, cadence, [0, 1])
    vector = pettingzoo_env_to_vec_env_v1(pad_observations_v0(simple_tag_v3.parallel_env()))
    env = pm.wrap(concat_vec_envs_v1(vector, num_vec_envs=2), mapping, seed=7, agents=AGENTS, **cadence)
    for episode in range(EPISODES):
        env.reset(seed=0)
        assert env.policy_ids.reshape(2, -1).tolist() == expected[episode].tolist()


@pytest.mark.parametrize(("mapping", "cadence"), CASES)
def test_an_assigner_of_many_environments_assigns_the_same(mapping, cadence):
    expected = table(mapping, cadence, np.arange(8))
    assigner = pm.PolicyAssigner(mapping, AGENTS, num_envs=8, seed=7, **cadence)
    for episode in range(EPISODES):
        assert assigner.begin_episodes().tolist() == expected[episode].tolist()


def test_env_index_and_episode_broadcast():
    result = pm.assignments(pm.Uniform(9), AGENTS, seed=0, env_index=[[0], [1], [2]], episode=[0, 10])
    assert result.shape == (3, 2, len(AGENTS))
    assert pm.assignments(9, AGENTS, seed=0).shape == (len(AGENTS),)
    assert pm.assignments(9, AGENTS, seed=0, env_index=[]).shape == (0, len(AGENTS))
    alone = pm.assignments(9, AGENTS, seed=0, env_index=2, episode=10)
    assert alone.tolist() == result[2, 1].tolist()


def test_batches_beyond_one_chunk_equal_single_draws():
    everything = pm.assignments(pm.Uniform(100), AGENTS, seed=3, env_index=np.arange(40_000))
    for index in (0, 16_383, 16_384, 39_999):
        assert everything[index].tolist() == pm.assignments(pm.Uniform(100), AGENTS, seed=3, env_index=index).tolist()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ({"seed": 0, "env_index": -1}, ValueError, "env_index must hold integers"),
        ({"seed": 0, "episode": 0.5}, TypeError, "episode must hold integers"),
        ({"seed": 0, "env_index": 8}, ValueError, "env_index must be below num_envs=8"),
        ({"seed": 0, "env_index": [0, 1], "episode": [0, 1, 2]}, ValueError, "broadcast"),
        ({"seed": 0, "resample_every": 0}, ValueError, "resample_every must be at least 1, got 0|resample_every"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        pm.assignments(pm.Balanced(3, num_envs=8), AGENTS, **arguments)


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("mapping", SETTLED, ids=repr)
def test_agents_that_join_one_by_one_get_the_policies_of_the_longer_seat_list(mapping, at_once):
    assigner = pm.PolicyAssigner(mapping, None, seed=7, env_index=3)
    assigner.begin_episodes(agents=CROWD[:2])
    kept = assigner.policy_ids
    for first in range(2, len(CROWD), at_once):
        assigner.add_agents(CROWD[: first + at_once])  # known agents change nothing
    expected = pm.assignments(mapping, CROWD, seed=7, env_index=3).tolist()
    assert assigner.policy_ids.tolist() == [expected]
    assert assigner.assignment(agents=["agent_24", "agent_0"]) == {"agent_24": expected[-1], "agent_0": expected[1]}
    assert kept.tolist() == [expected[:2]]


def test_joining_beyond_the_number_of_distinct_policies_raises_and_changes_nothing():
    assigner = pm.PolicyAssigner(pm.Uniform(5, replace=False), None, seed=0)
    assigner.begin_episodes(agents=CROWD[:1])
    for agent in CROWD[1:5]:
        assigner.add_agents([agent])
    assert sorted(assigner.policy_ids[0].tolist()) == [0, 1, 2, 3, 4]
    before = assigner.assignment()
    with pytest.raises(ValueError, match="got 5 policies for 6 seats"):
        assigner.add_agents([CROWD[5]])
    assert assigner.assignment() == before
    assert assigner.agents == tuple(CROWD[:5])


class Counted(pm.Uniform):
    """Counts the seats that it draws."""

    seats = 0

    def assign(self, draw):
        Counted.seats += draw.num_seats
        return super().assign(draw)


def test_cost_of_joining_agents_does_not_grow_with_the_agents_before():
    Counted.seats = 0
    assigner = pm.PolicyAssigner(Counted(4), None, seed=0)
    assigner.begin_episodes(agents=["v0"])
    for number in range(1, 2000):
        assigner.add_agents([f"v{number}"])
    assert Counted.seats < 4 * 2000


def test_cost_of_new_agents_in_each_episode_of_a_block_does_not_grow_with_those_gone():
    Counted.seats = 0
    assigner = pm.PolicyAssigner(Counted(4), None, seed=0, resample_every=10**6)
    for episode in range(400):
        assigner.begin_episodes(agents=[f"{episode}_{number}" for number in range(5)])
    assert Counted.seats < 4 * 2000


def test_joining_agents_survive_a_copy_of_the_assigner():
    assigner = pm.PolicyAssigner(1000, None, seed=0)
    assigner.begin_episodes(agents=["a"])
    assigner.add_agents(["b", "c"])
    other = pickle.loads(pickle.dumps(assigner))
    for one in (assigner, other):
        one.add_agents(["d", "e", "f", "g"])
        assert one.policy_ids[0].tolist() == pm.assignments(1000, ["a", "b", "c", "d", "e", "f", "g"], seed=0).tolist()
