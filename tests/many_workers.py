"""Jobs of a worker process: run some episodes of one environment, or compute assignments of others."""

import numpy as np

import pz_policymap as pm
from tests.stub_envs import StubParallel

AGENTS = ("red_0", "red_1", "red_2", "blue_0", "blue_1")
NUM_POLICIES = 6
NUM_ENVS = 24
NUM_EPISODES = 48
SEED = (3, 2**70)
EVERY = 3


def lottery(agents, draw):
    return {agent: int(draw.rng.bit_generator.random_raw() % NUM_POLICIES) for agent in agents}


MAPPINGS = {
    "uniform": pm.Uniform(NUM_POLICIES),
    "without replacement": pm.Uniform(NUM_POLICIES, replace=False),
    "weighted": pm.Weighted([0.3, 0.1, 0.1, 0.2, 0.2, 0.1]),
    "by env index": pm.ByEnvIndex(NUM_POLICIES, num_envs=NUM_ENVS),
    "function": pm.FromFunction(lottery),
    "teams": pm.Teams(pm.Uniform(NUM_POLICIES)),
    "roles": pm.Roles({"red": pm.Uniform([0, 1, 2]), "blue": pm.Uniform([3, 4, 5])}),
    "focal": pm.Focal(pm.Uniform([0, 1]), pm.Weighted([1, 2, 3, 1, 2, 3])),
    "per worker": pm.PerWorker(NUM_POLICIES, policies_per_worker=3, envs_per_worker=4),
    "balanced": pm.Balanced(NUM_POLICIES, num_envs=NUM_ENVS),
    "round robin": pm.RoundRobin(NUM_POLICIES, num_envs=NUM_ENVS, order="seeded"),
}


def play(folder, env_index, first, stop, killed):
    """Resumes from an earlier worker's checkpoint and runs to `stop`; a killed worker saves nothing."""
    earlier = pm.load(folder / f"{env_index} {first}.npz") if first else {}
    played, assigners = {}, {}
    for name, mapping in MAPPINGS.items():
        env = pm.wrap(
            StubParallel([AGENTS, ()], None, AGENTS), mapping, resample_every=EVERY, seed=SEED, env_index=env_index
        )
        assigners[name] = env.assigner
        if first:
            env.assigner.load_state_dict(earlier[name])
        for episode in range(first, stop):
            infos = env.reset()[1]
            played[name, env_index, episode] = [infos[agent]["policy_id"] for agent in AGENTS]
            env.step(dict.fromkeys(AGENTS, 0))
    if not killed:
        pm.save(folder / f"{env_index} {stop}.npz", **assigners)
    return played


def compute(places):
    """Computes the assignments at these (env index, episode) in one draw."""
    env_index, episode = np.array(places).T
    where = {"seed": SEED, "env_index": env_index, "episode": episode, "resample_every": EVERY}
    return {
        (name, *place): policies
        for name, mapping in MAPPINGS.items()
        for place, policies in zip(places, pm.assignments(mapping, AGENTS, **where).tolist(), strict=True)
    }


def work(job):
    """Does one job, a function and its arguments."""
    function, *arguments = job
    return function(*arguments)
