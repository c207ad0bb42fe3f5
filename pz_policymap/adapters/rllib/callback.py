"""`AssignPolicies`: the callback that gives every episode its assignment, and the algorithm what must survive."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ray.rllib.callbacks.callbacks import RLlibCallback

from pz_policymap.adapters.rllib.assignment import Assignment
from pz_policymap.adapters.rllib.counters import EpisodeCounters
from pz_policymap.adapters.rllib.environments import seats
from pz_policymap.adapters.rllib.module_mapping import ModuleMapping

_LOOK_AHEAD = 20  # episodes of a restarted runner that are tried: since it was last heard of it has played some


class AssignPolicies(RLlibCallback):
    """Puts an `Assignment` on every episode that is created, and counts those that begin.

    RLlib creates episodes that it then discards; one counts once its environment has been reset.
    """

    def on_algorithm_init(self, *, algorithm: Any, **_: Any) -> None:
        """Fails early, in the algorithm's process, where a runner would fail late."""
        config = algorithm.config
        self._built_with = mapping_of(config)
        if not (config.merge_env_runner_states and config.broadcast_env_runner_states):
            raise ValueError(
                f"episode numbers travel with the states of env runners, so they must be merged and broadcast: "
                f"got merge_env_runner_states={config.merge_env_runner_states!r}, "
                f"broadcast_env_runner_states={config.broadcast_env_runner_states!r}"
            )
        check_modules(self._built_with, config)
        if algorithm.eval_env_runner_group is not None:
            evaluation = algorithm.evaluation_config
            check_modules(mapping_of(evaluation), config)
            mapping_of(evaluation).check(num_envs(evaluation))
        if algorithm.env_runner_group is not None:
            self._built_with.check(num_envs(config))
            self._tell(algorithm, algorithm.env_runner_group)

    def on_episode_created(
        self, *, episode: Any, env_runner: Any, env: Any, env_index: int, rl_module: Any, **_: Any
    ) -> None:
        """Assigns all agents of an episode at once."""
        counters = counters_of(env_runner)
        if env_runner.worker_index and not counters.told:
            # RLlib takes it out of service for that, and brings it back with its numbers and the current mapping.
            raise RuntimeError(f"env runner {env_runner.worker_index} was restarted and has not been told its episodes")
        index = first_env_index(env_runner) + env_index
        before = counters.last(_name(env_runner.config, index))
        assignment = mapping_of(env_runner.config).begin(before, index, seats(env.envs[env_index]))
        if rl_module is not None:
            assignment.check(rl_module.keys())
        episode.agent_to_module_mapping_fn = assignment

    def on_episode_start(self, *, episode: Any, env_runner: Any, **_: Any) -> None:
        """Counts an episode whose environment has been reset."""
        self._count(episode, env_runner, over=False)

    def on_episode_end(self, *, episode: Any, env_runner: Any, **_: Any) -> None:
        """Takes down that an episode need not be played again."""
        self._count(episode, env_runner, over=True)

    def on_evaluate_start(self, *, algorithm: Any, **_: Any) -> None:
        """Tells evaluation runners where they stand: RLlib's own message may be dropped behind that of the weights."""
        if algorithm.eval_env_runner_group is not None:
            self._tell(algorithm, algorithm.eval_env_runner_group, evaluation=True)

    def on_evaluate_end(self, *, algorithm: Any, **_: Any) -> None:
        """Asks evaluation runners where they stand, which RLlib neither merges nor saves."""
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
        """Tells restarted runners where they stand, and the current mapping: they began with the original one."""
        self._tell(algorithm, env_runner_group, is_evaluation, list(env_runner_indices))

    def _tell(self, algorithm: Any, group: Any, evaluation: bool = False, restarted: list[int] | None = None) -> None:
        """Hands runners the counters and the mapping, and fails here if the mapping fails on what comes next.

        A runner that fails is restarted by RLlib for ever, and its error is only logged.
        """
        config = algorithm.evaluation_config if evaluation else algorithm.config
        mapping = algorithm.config.policy_mapping_fn
        if evaluation and mapping is self._built_with:
            mapping = config.policy_mapping_fn  # an evaluation may have a mapping of its own, until another is set
        state = algorithm_counters(algorithm).get_state()

        def hear(runner: Any) -> tuple[int, tuple[Hashable, ...]] | None:
            runner.config.multi_agent(policy_mapping_fn=mapping)
            counters_of(runner).set_state(state)
            return None if runner.env is None else (first_env_index(runner), seats(runner.env.envs[0]))

        settings = {} if restarted is None else {"remote_worker_ids": restarted, "local_env_runner": False}
        for answer in group.foreach_env_runner(hear, **settings):
            for env_index in [] if answer is None else range(answer[0], answer[0] + config.num_envs_per_env_runner):
                count = algorithm_counters(algorithm).last(_name(config, env_index))
                for _ in range(_LOOK_AHEAD if restarted else 1):
                    assignment = mapping.begin(count, env_index, answer[1])
                    assignment.check(algorithm.config.policies)
                    count = assignment.count

    @staticmethod
    def _count(episode: Any, env_runner: Any, over: bool) -> None:
        assignment = episode.agent_to_module_mapping_fn
        if not isinstance(assignment, Assignment) or assignment.count is None:
            raise TypeError(f"agent_to_module_mapping_fn must be the Assignment of the episode, got {assignment!r}")
        name = _name(env_runner.config, assignment.env_index)
        counters_of(env_runner).set(name, assignment.count._replace(over=over))


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


def num_envs(config: Any) -> int:
    """Returns how many environments all runners of a group have."""
    return int(max(config.num_env_runners, 1) * config.num_envs_per_env_runner)


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


def _name(config: Any, env_index: int | None) -> str:
    """Returns what an environment is called among the counters; evaluation runners have numbers of their own."""
    return f"{'evaluation' if config.in_evaluation else 'training'}/{env_index}"
