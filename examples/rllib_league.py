"""A league of two learners in RLlib: predators and prey learn against each other's present and past selves.

Three predators share a policy. In each episode one of the two learners takes its side, and meets the other learner or
one of its snapshots. Snapshots become modules; the oldest ones are removed once no running episode uses them.

    python -m pip install '.[rllib,demo]' torch
    python examples/rllib_league.py   # one minute
"""

import ray
from mpe2 import simple_tag_v3
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.tune.registry import register_env

import pz_policymap as pm
from pz_policymap.adapters.rllib import ParallelSeats, SelfPlay

ITERATIONS = 7
STEPS = 500  # of the environments, per iteration

SEATS = {
    "predator": lambda learner, others: pm.Roles({"adversary": learner, "agent": others}),
    "prey": lambda learner, others: pm.Roles({"adversary": pm.Shared(others), "agent": learner}),
}


def make_pool():
    """Returns the pool: half the opponents are the other learner, the rest its snapshots."""
    learners = [
        pm.PoolLearner(name, {other: 0.5, f"{other}:snapshots": (0.5, "pfsp")}, every=STEPS)
        for name, other in (("predator", "prey"), ("prey", "predator"))
    ]
    return pm.SnapshotPool(learners, capacity=4, seats=SEATS)


def module_specs():
    """Returns the specifications of both networks: predators and prey have different observations."""
    env = simple_tag_v3.parallel_env()
    return MultiRLModuleSpec(
        rl_module_specs={
            learner: RLModuleSpec(
                observation_space=env.observation_space(agent),
                action_space=env.action_space(agent),
                model_config={"fcnet_hiddens": [32]},
            )
            for learner, agent in (("predator", "adversary_0"), ("prey", "agent_0"))
        }
    )


def caught(returns, _):
    """Predators win if they touch the prey at least twice; they get 10 for each touch."""
    twice = returns["adversary_0"] >= 20.0
    return {agent: float(twice == agent.startswith("adversary")) for agent in returns}


def main(iterations=ITERATIONS):
    """Trains, and prints what happens."""
    register_env("tag", lambda _: ParallelSeats(simple_tag_v3.parallel_env(max_cycles=50)))
    pool = make_pool()
    self_play = SelfPlay(pool, pm.Payoff(pool.num_policies), team_of="prefix", score=caught)
    config = (
        PPOConfig()
        .environment("tag")
        .env_runners(num_env_runners=1, num_envs_per_env_runner=2, rollout_fragment_length="auto")
        .training(train_batch_size_per_learner=STEPS, minibatch_size=250, num_epochs=2, lr=1e-3)
        .rl_module(rl_module_spec=module_specs())
    )
    algorithm = self_play.configure(config, seed=0, resample_every=1).build_algo()
    for iteration in range(iterations):
        algorithm.train()
        added = self_play.update(algorithm)
        rate = self_play.payoff.win_rates[0, 1]
        print(f"iteration {iteration}: the predator beats the prey in {rate:.0%} of the games")
        print(
            f"    new snapshots: {', '.join(added) or 'none'}; modules: {', '.join(sorted(algorithm.config.policies))}"
        )
    algorithm.stop()


if __name__ == "__main__":
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    main()
    ray.shutdown()
