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
from pz_policymap.adapters.rllib.callback import algorithm_counters
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


def new_run(folder: Any = None) -> SelfPlay:
    learner = pm.PoolLearner("main", {"snapshots": 0.7, "random": 0.3}, every=2 * STEPS)
    pool = pm.SnapshotPool([learner], fixed=["random"], capacity=3)
    return SelfPlay(pool, pm.Payoff(2), team_of=lambda agent: agent in ("zoe", "adam"), folder=folder)


def built(self_play: SelfPlay) -> Any:
    config = (
        PPOConfig()
        .environment("meeting", disable_env_checking=True)
        .env_runners(num_env_runners=1, num_envs_per_env_runner=2, rollout_fragment_length=STEPS // 2)
        .training(train_batch_size_per_learner=STEPS, minibatch_size=4, num_epochs=1, lr=0.01)
        .rl_module(model_config={"fcnet_hiddens": [4]})
    )
    return self_play.configure(config, seed=3, resample_every=3).build_algo()


@pytest.fixture(scope="module")
def life(cluster: Any) -> SimpleNamespace:
    """A run with the modules, weights and running episodes after each update."""
    self_play = new_run()
    pool, algorithm = self_play.pool, built(self_play)
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


def on_runners(algorithm: Any) -> list[Any]:
    """Returns the modules with their weights, the mapping and the episode numbers of each runner."""
    return algorithm.env_runner_group.foreach_env_runner(
        lambda runner: (
            {name: weights(module).tolist() for name, module in runner.module._rl_modules.items()},
            repr(runner.config.policy_mapping_fn.mapping),
        ),
        local_env_runner=False,
    )


def test_saved_run_resumes_with_pool_ledger_modules_and_mapping(cluster, tmp_path):
    first = new_run(tmp_path / "run")
    assert not first.saved
    algorithm = built(first)
    for _ in range(9):
        algorithm.train()
        first.update(algorithm)
        first.save(algorithm)
    expected = on_runners(algorithm)
    numbers = algorithm_counters(algorithm).get_state()["environments"]
    algorithm.stop()
    assert [path.name for path in (tmp_path / "run").glob("algorithm_*")] == ["algorithm_9"]

    resumed = new_run(tmp_path / "run")
    assert resumed.saved
    again = resumed.resume()
    assert again.iteration == 9
    assert resumed.pool.state_dict() == first.pool.state_dict()
    assert len(resumed.pool.slots) == 3
    np.testing.assert_array_equal(resumed.payoff.state_dict()["table"], first.payoff.state_dict()["table"])
    assert set(again.config.policies) == {"main", "random", *(first.pool.names[i] for i in first.pool.slots)}
    assert on_runners(again) == expected
    assert algorithm_counters(again).get_state()["environments"] == numbers
    for _ in range(6):
        again.train()
        resumed.update(again)
    again.stop()
    assert len(resumed.pool.members) > len(first.pool.members)
    assert resumed.payoff.games.sum() > first.payoff.games.sum()


def test_run_without_folder_is_not_saved():
    self_play = new_run()
    assert not self_play.saved
    with pytest.raises(ValueError, match="folder must be given to save or resume a run, got None"):
        self_play.save(None)
    with pytest.raises(ValueError, match="folder must be given"):
        self_play.resume()


def test_results_of_evaluation_are_not_kept():
    keep = KeepResults()
    keep.on_episode_end(episode=None, env_runner=SimpleNamespace(config=SimpleNamespace(in_evaluation=True)))
    assert keep.finished == []


def test_score_that_is_not_a_function_raises():
    with pytest.raises(TypeError, match="score must be a function of returns and infos, got 3"):
        SelfPlay(pm.SnapshotPool(["main"]), pm.Payoff(1), score=3)
