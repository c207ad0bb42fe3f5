"""Trains a population of three modules with RLlib's PPO on two env runners.

Three agents spread over three landmarks. All three policies learn, and assignments are resampled every two episodes. A
callback counts which policies meet.

    python -m pip install '.[rllib,demo]' torch
    python examples/rllib_population.py   # one minute
"""

from itertools import combinations_with_replacement

import ray
from mpe2 import simple_spread_v3
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune.registry import register_env

import pz_policymap as pm
from pz_policymap.adapters.rllib import ParallelSeats, configure

NUM_POLICIES = 3
ITERATIONS = 3


def count_meetings(*, episode, metrics_logger, **_):
    """Counts the pairs of policies that met in an episode."""
    ids = sorted(episode.agent_to_module_mapping_fn.policy_ids.values())
    for first, second in {(ids[0], ids[1]), (ids[0], ids[2]), (ids[1], ids[2])}:
        metrics_logger.log_value(f"met_{first}_{second}", 1, reduce="lifetime_sum")


if __name__ == "__main__":
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    register_env("spread", lambda _: ParallelSeats(simple_spread_v3.parallel_env(N=3, max_cycles=25)))
    config = (
        PPOConfig()
        .environment("spread")
        .env_runners(num_env_runners=2, num_envs_per_env_runner=2, rollout_fragment_length=100)
        .training(train_batch_size_per_learner=400, minibatch_size=100, num_epochs=3)
        .rl_module(model_config={"fcnet_hiddens": [32]})
        .callbacks(on_episode_end=count_meetings)
    )
    configure(config, pm.Uniform(NUM_POLICIES), seed=0, resample_every=2)  # call it last: it keeps the callback
    algorithm = config.build_algo()
    for iteration in range(ITERATIONS):
        results = algorithm.train()["env_runners"]
        returns = results["module_episode_returns_mean"]
        rounded = {module: round(float(returns[module]), 1) for module in sorted(returns)}
        print(f"iteration {iteration}: mean returns {rounded}")
    for first, second in combinations_with_replacement(range(NUM_POLICIES), 2):
        together = int(results.get(f"met_{first}_{second}", 0))
        print(f"policies {first} and {second} met in {together} episodes")
    algorithm.stop()
    ray.shutdown()
