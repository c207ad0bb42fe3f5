"""`SelfPlay`: a `SnapshotPool` drives the modules and the mapping of an RLlib algorithm."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils import force_list
from ray.rllib.utils.metrics import ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME

from pz_policymap.adapters.rllib.callback import algorithm_counters, counters_of, groups_of
from pz_policymap.adapters.rllib.configure import configure, set_mapping
from pz_policymap.checkpoint import load, save
from pz_policymap.mappings.groups import GroupOf
from pz_policymap.pool.snapshot_pool import SnapshotPool
from pz_policymap.recording.running_episode import Recording, Score
from pz_policymap.results.episode import Episode
from pz_policymap.results.payoff import Payoff

_STATE = "pool.npz"


class KeepResults(RLlibCallback):
    """Keeps the results of a runner's training episodes until `SelfPlay` collects them.

    Args:
        team_of: As in `record_results`.
        score: As in `record_results`; its second argument is empty.
    """

    def __init__(self, team_of: GroupOf | None = None, score: Score | None = None) -> None:
        super().__init__()
        self.finished: list[Episode] = []
        self._recording = Recording([self.finished.append], team_of, score, "policy_id")

    def on_episode_end(self, *, episode: Any, env_runner: Any, prev_episode_chunks: Any = (), **_: Any) -> None:
        """Sums up the returns of all chunks of an episode."""
        if env_runner.config.in_evaluation:
            return
        policies = episode.agent_to_module_mapping_fn.policy_ids
        returns, lengths = dict.fromkeys(policies, 0.0), dict.fromkeys(policies, 0)
        for chunk in (*prev_episode_chunks, episode):
            for agent, part in chunk.agent_episodes.items():
                returns[agent] += float(part.get_return())
                lengths[agent] += len(part)
        self._recording.finish(policies, returns, lengths, {})


class SelfPlay:
    """Snapshots modules that learn, and updates the mapping, between the iterations of an algorithm.

    A snapshot is a module with the name of its member. A module is removed once no running episode uses it, and no
    episode that a restarted runner would repeat.

        self_play = SelfPlay(pool, payoff, folder="run")
        algorithm = self_play.resume() if self_play.saved else self_play.configure(config, seed=0).build_algo()
        while algorithm.iteration < 100:
            algorithm.train()
            self_play.update(algorithm)
            self_play.save(algorithm)

    Args:
        pool: The pool; learners and fixed policies are modules with these names.
        payoff: The ledger.
        team_of: As in `record_results`: agents of a team win and lose together.
        score: `score(returns, {}) -> {agent: number}` decides the winner of an episode from the returns by agent.
            None: the returns.
        folder: Where `save` puts algorithm, pool and ledger. None: nowhere.
    """

    def __init__(
        self,
        pool: SnapshotPool,
        payoff: Payoff,
        *,
        team_of: GroupOf | None = None,
        score: Score | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.pool, self.payoff = pool, payoff
        self.folder = None if folder is None else Path(folder)
        self._keep = partial(KeepResults, team_of, score)
        self._keep()  # raises if an argument is bad

    def configure(self, config: Any, **options: Any) -> Any:
        """Adds the pool to an algorithm's configuration, as `configure` does with a mapping; call it last.

        Args:
            config: An `AlgorithmConfig` of the new API stack. Fixed policies need a module of their own in its
                `rl_module_spec`.
            **options: `seed`, `resample_every` and `warmup_episodes` of `configure`.

        Returns:
            The same configuration.
        """
        learners = [member.policy_id for member in self.pool.members if member.kind == "learner"]
        config = configure(config, self.pool.last_mapping, names=self.pool.names, learners=learners, **options)
        return config.callbacks([*force_list(config.callbacks_class), self._keep])

    def update(self, algorithm: Any) -> list[str]:
        """Collects results, takes the snapshots that are due, sends the mapping, and removes released modules.

        Args:
            algorithm: An algorithm configured by `configure`, after an iteration.

        Returns:
            The names of the modules that were added.
        """
        pool, payoff = self.pool, self.payoff
        for episodes in algorithm.env_runner_group.foreach_env_runner(_take_finished):
            for episode in episodes:
                payoff.record(episode)
        step = algorithm.metrics.peek((ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME), default=0)
        added = []
        for learner in [member.name for member in pool.members if member.kind == "learner"]:
            if pool.snapshot_due(learner, int(step), payoff):
                added.append(pool.snapshot(learner, int(step), payoff).name)
                _copy_module(algorithm, learner, added[-1])
        set_mapping(algorithm, pool.mapping(payoff), names=pool.names)
        for member in pool.release(in_use=policies_in_use(algorithm)):
            algorithm.remove_module(member.name)
        return added

    @property
    def saved(self) -> bool:
        """Whether the folder holds a run to resume."""
        return self.folder is not None and (self.folder / _STATE).exists()

    def save(self, algorithm: Any) -> None:
        """Saves algorithm, pool and ledger after `update`, so that `resume` finds a run that fits at any moment.

        Raises:
            ValueError: If no folder was given.
        """
        folder = self._folder()
        name = f"algorithm_{algorithm.iteration}"
        algorithm.save_to_path(str((folder / name).resolve()))
        save(folder / _STATE, pool=self.pool, payoff=self.payoff, run={"algorithm": name})
        for older in folder.glob("algorithm_*"):
            if older.name != name:
                shutil.rmtree(older)

    def resume(self) -> Any:
        """Returns the algorithm of a saved run, and loads pool and ledger; every environment continues its schedule.

        Raises:
            OSError: If the folder holds no saved run.
            ValueError: If no folder was given, or if the states do not fit pool and ledger.
        """
        folder = self._folder()
        states = load(folder / _STATE)
        self.pool.load_state_dict(states["pool"])
        self.payoff.load_state_dict(states["payoff"])
        return Algorithm.from_checkpoint(str((folder / states["run"]["algorithm"]).resolve()))

    def _folder(self) -> Path:
        if self.folder is None:
            raise ValueError("folder must be given to save or resume a run, got None")
        return self.folder


def policies_in_use(algorithm: Any) -> set[int]:
    """Returns the policies of running episodes, of draws in force, and of episodes that may be repeated."""
    known = [algorithm_counters(algorithm).get_state()]
    used: set[int] = set()
    for group, _ in groups_of(algorithm):
        for running, state in group.foreach_env_runner(_in_use):
            used.update(running)
            known.append(state)
    for state in known:
        for _, _, policies, *_ in state["environments"].values():
            used.update(policies)
    return used


def _in_use(runner: Any) -> tuple[list[int], dict[str, Any]]:
    """Returns the policies of a runner's episodes, and its counts."""
    episodes: Iterable[Any] = runner._ongoing_episodes or ()
    running = [
        policy
        for episode in episodes
        if episode is not None
        for policy in (episode.agent_to_module_mapping_fn.policy_ids or {}).values()
    ]
    return running, counters_of(runner).get_state()


def _take_finished(runner: Any) -> list[Episode]:
    """Returns the episodes of a runner that have ended since the last call."""
    taken: list[Episode] = []
    for callback in runner._callbacks:
        if isinstance(callback, KeepResults):
            taken.extend(callback.finished)
            callback.finished.clear()
    return taken


def _copy_module(algorithm: Any, learner: str, name: str) -> None:
    """Adds a module with the present parameters of a learner to all processes."""
    module = algorithm.get_module(learner)
    state = module.get_state()
    algorithm.add_module(name, RLModuleSpec.from_module(module))
    algorithm.learner_group.set_state({"learner": {"rl_module": {name: state}}})

    def copy(runner: Any) -> None:
        # Runners ignore weights sent before the next iteration: until then the module would act at random.
        runner.module[name].set_state(state)

    for group, _ in groups_of(algorithm):
        group.foreach_env_runner(copy)
