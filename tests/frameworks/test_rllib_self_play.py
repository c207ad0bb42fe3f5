"""`SelfPlay` on a real local Ray cluster: `nox -s rllib`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune.registry import register_env

import pz_policymap as pm
from pz_policymap.adapters.rllib import ParallelSeats, SelfPlay
from pz_policymap.adapters.rllib.self_play import KeepResults, policies_in_use
from tests.frameworks.test_rllib import Meeting

STEPS = 16  # per iteration, fewer than two episodes of each environment
ITERATIONS = 16


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, configure_logging=False)
    register_env("meeting", lambda _: ParallelSeats(Meeting()))
    yield
    ray.shutdown()


def running(algorithm: Any) -> set[str]:
    """Returns the modules of all episodes that are running, and of the blocks that go on."""

    def of_runner(runner: Any) -> set[str]:
        episodes = [episode for episode in runner._ongoing_episodes or () if episode is not None]
        return {module for one in episodes for module in one.agent_to_module_mapping_fn.modules.values()}

    return set().union(*algorithm.env_runner_group.foreach_env_runner(of_runner))


def weights(module: Any) -> Any:
    return np.concatenate([np.ravel(value) for _, value in sorted(module.get_state(inference_only=True).items())])


@pytest.fixture(scope="module")
def life(cluster: Any) -> SimpleNamespace:
    """A run with the modules, weights and running episodes after each update."""
    learner = pm.PoolLearner("main", {"snapshots": 0.7, "random": 0.3}, every=2 * STEPS)
    pool = pm.SnapshotPool([learner], fixed=["random"], capacity=3)
    self_play = SelfPlay(pool, pm.Payoff(2), team_of=lambda agent: agent in ("zoe", "adam"))
    config = (
        PPOConfig()
        .environment("meeting", disable_env_checking=True)
        .env_runners(num_env_runners=1, num_envs_per_env_runner=2, rollout_fragment_length=STEPS // 2)
        .training(train_batch_size_per_learner=STEPS, minibatch_size=4, num_epochs=1, lr=0.01)
        .rl_module(model_config={"fcnet_hiddens": [4]})
    )
    algorithm = self_play.configure(config, seed=3, resample_every=3).build_algo()
    rows, recorded = [], []
    record = self_play.payoff.record
    self_play.payoff.record = lambda episode: (recorded.append(episode), record(episode))
    for _ in range(ITERATIONS):
        algorithm.train()
        added = self_play.update(algorithm)
        module = algorithm.env_runner.module
        rows.append(
            SimpleNamespace(
                added=added,
                modules=set(algorithm.config.policies),
                remote=algorithm.env_runner_group.foreach_env_runner(lambda runner: set(runner.module.keys())),
                running=running(algorithm),
                in_use={pool.names[policy] for policy in policies_in_use(algorithm)},
                on_runner=algorithm.env_runner_group.foreach_env_runner(
                    lambda runner: {name: weights(module) for name, module in runner.module._rl_modules.items()},
                    local_env_runner=False,
                )[0],
                weights={name: weights(module[name]) for name in module.keys()},  # noqa: SIM118
                trained=algorithm.config.policies_to_train,
            )
        )
    algorithm.stop()
    return SimpleNamespace(rows=rows, pool=pool, payoff=self_play.payoff, recorded=recorded)


def test_snapshots_become_modules_on_all_runners(life):
    assert [name for row in life.rows for name in row.added] == [member.name for member in life.pool.members[2:]]
    assert len(life.pool.members) > 5
    for row in life.rows:
        assert row.remote
        assert all(names == row.modules for names in row.remote)
        assert set(row.added) <= row.modules
        assert list(row.trained) == ["main"]


def test_snapshot_keeps_the_weights_that_the_learner_had(life):
    taken = {}
    for row in life.rows:
        for name in row.added:
            taken[name] = row.weights["main"]
            assert set(row.added) <= set(row.on_runner)
        for name in row.weights.keys() & taken.keys():
            np.testing.assert_array_equal(row.weights[name], taken[name])
            np.testing.assert_array_equal(row.on_runner[name], taken[name])
    assert len({tuple(one.tolist()) for one in taken.values()}) == len(taken)


def test_removed_module_is_not_used_by_a_running_episode(life):
    removed, kept = set(), 0
    for before, row in zip(life.rows, life.rows[1:], strict=False):
        removed |= before.modules - row.modules
        assert not removed & row.running
        assert not removed & row.in_use
        retired = {life.pool.names[i] for i in life.pool.slots} - {life.pool.names[i] for i in life.pool.active()}
        kept += len(retired & row.running)
        assert row.running <= row.in_use <= row.modules
    assert len(removed) >= 2
    assert all(len(row.modules) <= 2 + 3 for row in life.rows)  # the capacity


def test_results_of_episodes_cut_into_chunks_are_those_of_whole_episodes(life):
    assert len(life.recorded) > 20
    assert {episode.returns for episode in life.recorded} <= {(float(n),) * 4 for n in range(5, 10)}
    assert {episode.lengths for episode in life.recorded} <= {(n,) * 4 for n in range(5, 10)}
    assert {len(set(episode.sides)) for episode in life.recorded} == {2}
    assert all(episode.policies.count(0) >= 1 for episode in life.recorded)
    assert life.payoff.games.sum() > 0


def test_results_of_evaluation_are_not_kept():
    keep = KeepResults()
    keep.on_episode_end(episode=None, env_runner=SimpleNamespace(config=SimpleNamespace(in_evaluation=True)))
    assert keep.finished == []


def test_score_that_is_not_a_function_raises():
    with pytest.raises(TypeError, match="score must be a function of returns and infos, got 3"):
        SelfPlay(pm.SnapshotPool(["main"]), pm.Payoff(1), score=3)
