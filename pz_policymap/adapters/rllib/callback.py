"""`AssignPolicies`: the callback that gives every episode its assignment, and the algorithm what must survive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ray.rllib.callbacks.callbacks import RLlibCallback

from pz_policymap.adapters.rllib.assignment import Assignment, Count
from pz_policymap.adapters.rllib.counters import EpisodeCounters
from pz_policymap.adapters.rllib.environments import seats
from pz_policymap.adapters.rllib.module_mapping import ModuleMapping


class AssignPolicies(RLlibCallback):
    """Puts an `Assignment` on every episode that is created, and counts those that begin.

    RLlib creates episodes that it then discards; one counts once its environment has been reset.
    """

    def on_algorithm_init(self, *, algorithm: Any, **_: Any) -> None:
        """Fails early, in the algorithm's process, where a runner would fail late."""
        self._built_with = algorithm.config.policy_mapping_fn
        check_modules(mapping_of(algorithm.config), algorithm.config)
        groups = [(algorithm.config, algorithm.env_runner_group)]
        groups += [(algorithm.evaluation_config, algorithm.eval_env_runner_group)]
        for config, group in groups:
            if group is not None:
                mapping_of(config).check(max(config.num_env_runners, 1) * config.num_envs_per_env_runner)

    def on_episode_created(
        self, *, episode: Any, env_runner: Any, env: Any, env_index: int, rl_module: Any, **_: Any
    ) -> None:
        """Assigns all agents of an episode at once."""
        counters = counters_of(env_runner)
        if env_runner.worker_index and env_runner.config.broadcast_env_runner_states and not counters.told:
            # RLlib takes it out of service for that, and brings it back with its state and the current mapping.
            raise RuntimeError(f"env runner {env_runner.worker_index} was restarted and has not been told its episodes")
        try:
            index = first_env_index(env_runner) + env_index
            before = counters.last(_name(env_runner, env_index))
            assignment = mapping_of(env_runner.config).begin(before, index, seats(env.envs[env_index]))
            for agent, module in assignment.modules.items():
                if rl_module is not None and module not in rl_module:
                    modules = sorted(rl_module.keys())
                    raise ValueError(f"agent {agent!r} is assigned module {module!r}, which is not among {modules}")
        except (TypeError, ValueError) as error:
            counters.problem = str(error)  # RLlib only logs it and tries again
            raise
        episode.agent_to_module_mapping_fn = assignment

    def on_episode_start(self, *, episode: Any, env_runner: Any, env_index: int, **_: Any) -> None:
        """Counts an episode whose environment has been reset."""
        counters_of(env_runner).set(_name(env_runner, env_index), _count(episode))

    def on_episode_end(self, *, episode: Any, env_runner: Any, env_index: int, **_: Any) -> None:
        """Takes down that an episode need not be played again."""
        counters_of(env_runner).set(_name(env_runner, env_index), _count(episode)._replace(over=True))

    def on_evaluate_end(self, *, algorithm: Any, **_: Any) -> None:
        """Fetches the counters of the evaluation runners, which RLlib neither merges nor saves."""
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
        """Gives restarted runners the current mapping: they were begun with the original configuration."""
        mapping = algorithm.config.policy_mapping_fn
        if is_evaluation and mapping is self._built_with:
            mapping = algorithm.evaluation_config.policy_mapping_fn  # it may have one of its own, until one is set

        def resume(runner: Any) -> str | None:
            runner.config.multi_agent(policy_mapping_fn=mapping)
            return counters_of(runner).problem

        settings = {"remote_worker_ids": list(env_runner_indices), "local_env_runner": False}
        problems = [problem for problem in env_runner_group.foreach_env_runner(resume, **settings) if problem]
        if problems:
            raise ValueError(problems[0])


def mapping_of(config: Any) -> ModuleMapping:
    """Returns the mapping that a configuration holds, or raises where something else has taken its place."""
    mapping = config.policy_mapping_fn
    if not isinstance(mapping, ModuleMapping):
        raise TypeError(
            f"policy_mapping_fn must be a ModuleMapping, got {mapping!r}; call configure() after config.multi_agent(), "
            f"and use ModuleMapping.follow() for new_agent_to_module_mapping_fn"
        )
    return mapping


def check_modules(mapping: ModuleMapping, config: Any) -> None:
    """Raises a ValueError where a policy of a population of known size has no module."""
    for policy in range(mapping.mapping.num_policies or 0):
        if mapping.module(policy) not in config.policies:
            modules = sorted(config.policies)
            raise ValueError(f"policy {policy} acts by module {mapping.module(policy)!r}, which is not among {modules}")


def counters_of(env_runner: Any) -> EpisodeCounters:
    """Returns the counters of an env runner."""
    return _first_counters(env_runner._env_to_module)


def algorithm_counters(algorithm: Any) -> EpisodeCounters:
    """Returns the counters of the algorithm's process, which it saves and sends to others."""
    runner = algorithm.env_runner
    return _first_counters(algorithm.env_to_module_connector) if runner is None else counters_of(runner)


def first_env_index(env_runner: Any) -> int:
    """Returns the index of a runner's first environment over all runners of its group; a local one comes last."""
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


def _name(env_runner: Any, env_index: int) -> str:
    """Returns what an environment is called among the counters."""
    group = "evaluation" if env_runner.config.in_evaluation else "training"
    return f"{group}/{first_env_index(env_runner) + env_index}"


def _count(episode: Any) -> Count:
    assignment = episode.agent_to_module_mapping_fn
    if not isinstance(assignment, Assignment) or assignment.count is None:
        raise TypeError(f"agent_to_module_mapping_fn must be the Assignment of this episode, got {assignment!r}")
    return assignment.count
