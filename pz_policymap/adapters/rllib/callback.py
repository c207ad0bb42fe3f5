"""`AssignPolicies`: the callback that gives each episode its assignment and restarted runners their episode numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ray.rllib.callbacks.callbacks import RLlibCallback

from pz_policymap.adapters.rllib.counters import EpisodeCounters
from pz_policymap.adapters.rllib.environments import seats
from pz_policymap.adapters.rllib.module_mapping import Assignment, Count, ModuleMapping

_LOOK_AHEAD = 20  # episodes rehearsed for a restarted runner, whose latest episodes are unknown


class AssignPolicies(RLlibCallback):
    """Puts an `Assignment` on each episode that is created, and counts those that begin.

    RLlib creates episodes that it then discards. An episode counts once its environment has been reset.
    """

    def on_algorithm_init(self, *, algorithm: Any, **_: Any) -> None:
        """Raises errors in the algorithm's process that would otherwise surface late, in a runner."""
        config = algorithm.config
        self._built_with = mapping_of(config)
        if not (config.merge_env_runner_states and config.broadcast_env_runner_states):
            raise ValueError(
                f"merge_env_runner_states and broadcast_env_runner_states must be set, because they carry the episode "
                f"numbers, got merge_env_runner_states={config.merge_env_runner_states!r}, "
                f"broadcast_env_runner_states={config.broadcast_env_runner_states!r}"
            )
        for group, of_group in groups_of(algorithm):
            check_mapping(mapping_of(of_group), algorithm, group, of_group)
        if algorithm.env_runner_group is not None:
            self._send(algorithm, algorithm.env_runner_group)

    def on_episode_created(
        self, *, episode: Any, env_runner: Any, env: Any, env_index: int, rl_module: Any, **_: Any
    ) -> None:
        """Assigns all agents of an episode at once."""
        counters = counters_of(env_runner)
        if env_runner.worker_index and not counters.received:
            # RLlib then restarts the runner, and `on_env_runners_recreated` sends it numbers and mapping.
            raise RuntimeError(f"env runner {env_runner.worker_index} was restarted and has no episode numbers yet")
        index = first_env_index(env_runner) + env_index
        before = counters.last(_name(env_runner.config, index))
        assignment = mapping_of(env_runner.config).begin(before, index, seats(env.envs[env_index]))
        if rl_module is not None:
            assignment.check(rl_module.keys())
        episode.agent_to_module_mapping_fn = assignment

    def on_episode_start(self, *, episode: Any, env_runner: Any, **_: Any) -> None:
        """Counts an episode whose environment has been reset."""
        counters_of(env_runner).begin(*_counted(episode, env_runner))

    def on_episode_end(self, *, episode: Any, env_runner: Any, **_: Any) -> None:
        """Notes that an episode has ended."""
        counters_of(env_runner).end(*_counted(episode, env_runner))

    def on_evaluate_start(self, *, algorithm: Any, **_: Any) -> None:
        """Sends evaluation runners their episode numbers, because RLlib may drop its own message."""
        if algorithm.eval_env_runner_group is not None:
            self._send(algorithm, algorithm.eval_env_runner_group, evaluation=True)

    def on_evaluate_end(self, *, algorithm: Any, **_: Any) -> None:
        """Collects the episode numbers of evaluation runners, which RLlib neither merges nor saves."""
        if algorithm.eval_env_runner_group is not None:
            states = algorithm.eval_env_runner_group.foreach_env_runner(lambda runner: counters_of(runner).get_state())
            algorithm_counters(algorithm).learn(states)

    def on_env_runners_recreated(
        self,
        *,
        algorithm: Any,
        env_runner_group: Any,
        env_runner_indices: Sequence[int],
        is_evaluation: bool,
        **_: Any,
    ) -> None:
        """Sends restarted runners their episode numbers and the current mapping; they begin with the original one."""
        self._send(algorithm, env_runner_group, is_evaluation, list(env_runner_indices))

    def _send(self, algorithm: Any, group: Any, evaluation: bool = False, restarted: list[int] | None = None) -> None:
        """Sends runners the episode numbers and the mapping."""
        config = algorithm.evaluation_config if evaluation else algorithm.config
        mapping = algorithm.config.policy_mapping_fn
        if evaluation and mapping is self._built_with:
            mapping = config.policy_mapping_fn  # evaluation may use another mapping until set_mapping is called
        if restarted is None:
            runners, episodes = {}, 1
        else:
            runners, episodes = {"remote_worker_ids": restarted, "local_env_runner": False}, _LOOK_AHEAD
        rehearse(mapping, algorithm, group, config, episodes, **runners)
        state = algorithm_counters(algorithm).get_state()

        def receive(runner: Any) -> None:
            runner.config.multi_agent(policy_mapping_fn=mapping)
            counters_of(runner).receive(state)

        group.foreach_env_runner(receive, **runners)


def mapping_of(config: Any) -> ModuleMapping:
    """Returns the mapping of a configuration, or raises an error if something else has replaced it."""
    mapping = config.policy_mapping_fn
    if not isinstance(mapping, ModuleMapping):
        raise TypeError(
            f"policy_mapping_fn must be a ModuleMapping, got {mapping!r}; call configure() after config.multi_agent(), "
            f"and use ModuleMapping.follow() for new_agent_to_module_mapping_fn"
        )
    return mapping


def groups_of(algorithm: Any) -> list[tuple[Any, Any]]:
    """Returns the groups of env runners of an algorithm with their configurations, training first."""
    groups = (
        (algorithm.env_runner_group, algorithm.config),
        (algorithm.eval_env_runner_group, algorithm.evaluation_config),
    )
    return [(group, config) for group, config in groups if group is not None]


def check_mapping(mapping: ModuleMapping, algorithm: Any, group: Any, config: Any) -> None:
    """Raises an error if a mapping cannot serve a group of env runners, or if one of its policies has no module."""
    modules = sorted(algorithm.config.policies)
    for policy in range(mapping.mapping.num_policies or 0):
        if mapping.module(policy) not in modules:
            raise ValueError(f"module of policy {policy} must be one of {modules}, got {mapping.module(policy)!r}")
    mapping.check(num_envs(config))
    rehearse(mapping, algorithm, group, config)


def rehearse(
    mapping: ModuleMapping, algorithm: Any, group: Any, config: Any, episodes: int = 1, **runners: Any
) -> None:
    """Makes the next assignments of each environment, so that a mapping that fails raises here.

    RLlib restarts a failing runner again and again, and only logs the error.
    """

    def place(runner: Any) -> tuple[int, tuple[Hashable, ...]] | None:
        return None if runner.env is None else (first_env_index(runner), seats(runner.env.envs[0]))

    for first, agents in filter(None, group.foreach_env_runner(place, **runners)):
        for env_index in range(first, first + config.num_envs_per_env_runner):
            count = algorithm_counters(algorithm).last(_name(config, env_index))
            for _ in range(episodes):
                assignment = mapping.begin(count, env_index, agents)
                assignment.check(algorithm.config.policies)
                count = assignment.count


def counters_of(env_runner: Any) -> EpisodeCounters:
    """Returns the counters of an env runner."""
    return _first_counters(env_runner._env_to_module)


def algorithm_counters(algorithm: Any) -> EpisodeCounters:
    """Returns the counters of the algorithm's process, which are saved and sent to the runners."""
    runner = algorithm.env_runner
    return _first_counters(algorithm.env_to_module_connector) if runner is None else counters_of(runner)


def num_envs(config: Any) -> int:
    """Returns the number of environments of all runners of a group."""
    return int(max(config.num_env_runners, 1) * config.num_envs_per_env_runner)


def first_env_index(env_runner: Any) -> int:
    """Returns the index of a runner's first environment among those of its group; a local runner comes last."""
    config = env_runner.config
    place = env_runner.worker_index - 1 if env_runner.worker_index else config.num_env_runners
    return int(place * config.num_envs_per_env_runner)


def _first_counters(pipeline: Any) -> EpisodeCounters:
    if not len(pipeline) or not isinstance(pipeline[0], EpisodeCounters):
        raise TypeError(
            "env_to_module_connector must begin with EpisodeCounters; call configure() after config.env_runners()"
        )
    counters: EpisodeCounters = pipeline[0]
    return counters


def _counted(episode: Any, env_runner: Any) -> tuple[str, Count]:
    """Returns the key of an episode's environment among the counters, and the count of the episode."""
    assignment = episode.agent_to_module_mapping_fn
    if not isinstance(assignment, Assignment) or assignment.count is None:
        raise TypeError(f"agent_to_module_mapping_fn must be the Assignment of the episode, got {assignment!r}")
    return _name(env_runner.config, assignment.env_index), assignment.count


def _name(config: Any, env_index: int | None) -> str:
    """Returns the key of an environment among the counters; evaluation environments have their own numbers."""
    return f"{'evaluation' if config.in_evaluation else 'training'}/{env_index}"
