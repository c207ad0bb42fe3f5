"""`configure` puts a mapping into an algorithm's configuration; `set_mapping` changes it during training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.utils import force_list

from pz_policymap.adapters.rllib.callback import AssignPolicies, check_mapping, groups_of, mapping_of
from pz_policymap.adapters.rllib.counters import EpisodeCounters
from pz_policymap.adapters.rllib.module_mapping import ModuleMapping
from pz_policymap.arguments import integer
from pz_policymap.mappings.conversion import MappingLike


def configure(
    config: Any,
    mapping: MappingLike,
    *,
    seed: int | Sequence[int] | None = None,
    resample_every: int | None = None,
    warmup_episodes: int = 0,
    names: Sequence[str] | None = None,
    learners: Iterable[int] | None = None,
) -> Any:
    """Adds a mapping to an algorithm's configuration: a mapping function, a callback and a connector.

    Call it after the other settings. It keeps existing callbacks and connectors, but later calls of `config.callbacks`,
    `config.multi_agent(policy_mapping_fn=...)` and `config.env_runners(env_to_module_connector=...)` replace its parts.

    Args:
        config: An `AlgorithmConfig` of the new API stack.
        mapping: A `PolicyMapping`, its text form, a function (see `FromFunction`), or the size of a population.
        seed: Pins the assignments: an integer >= 0 or several. None: taken from OS entropy, once for all runners.
        resample_every: Number of episodes between resamples, >= 1. None: 10, or 1 for mappings that are schedules.
        warmup_episodes: Number of first episodes that each resample, so that bugs surface early, >= 0.
        names: The module of each policy, in order. None: `policy_0`, `policy_1`, ...
        learners: The policies to train. None: all.

    Returns:
        The same configuration.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a number is out of range, or if the mapping cannot be used.

    Example:
        >>> from ray.rllib.algorithms.ppo import PPOConfig
        >>> config = configure(PPOConfig(), 3, seed=0, learners=[0])
        >>> sorted(config.policies), config.policies_to_train
        (['policy_0', 'policy_1', 'policy_2'], ['policy_0'])
    """
    if not isinstance(config, AlgorithmConfig):
        raise TypeError(f"config must be an AlgorithmConfig, got {config!r}")
    if not config.enable_env_runner_and_connector_v2:
        raise ValueError("config must use the new API stack, got enable_env_runner_and_connector_v2=False")
    rule = ModuleMapping(mapping, seed, resample_every, warmup_episodes, names)
    earlier = config.policy_mapping_fn.known_names if isinstance(config.policy_mapping_fn, ModuleMapping) else ()
    ours = not config.is_multi_agent or set(config.policies) == set(earlier)
    modules = rule.known_names if ours else tuple(config.policies)
    trained = None if learners is None else _trained(learners, rule, modules)
    if ours and modules:
        config.multi_agent(policies=dict.fromkeys(modules, (None, None, None, None)))
    config.multi_agent(policy_mapping_fn=rule)
    if trained is not None:
        config.multi_agent(policies_to_train=trained)
    others = [callback for callback in force_list(config.callbacks_class) if callback is not AssignPolicies]
    config.callbacks([AssignPolicies, *others])
    before = config._env_to_module_connector
    config.env_runners(env_to_module_connector=before if isinstance(before, CountersFirst) else CountersFirst(before))
    return config


def set_mapping(algorithm: Any, mapping: MappingLike, *, names: Sequence[str] | None = None, now: bool = False) -> None:
    """Changes the mapping of all runners of an algorithm, evaluation runners included, from the next draw.

    A weights callable is copied to the runners and does not see new results there: pass a mapping with fresh numbers
    instead. To add or remove a module at the same time, pass `algorithm.config.policy_mapping_fn.follow(mapping)` to
    `add_module` or `remove_module`.

        for _ in range(100):
            algorithm.train()
            set_mapping(algorithm, pm.Focal(pm.Fixed(0), pm.Weighted(pm.pfsp(payoff.win_rates[0]))))

    Args:
        algorithm: An algorithm configured by `configure`.
        mapping: As in `configure`.
        names: The module of each policy. None: unchanged.
        now: Whether each environment resamples when its next episode begins, whatever the cadence.

    Raises:
        TypeError, ValueError: As `configure`, or if a policy has no module; the mapping is then unchanged.
    """
    if not isinstance(algorithm, Algorithm):
        raise TypeError(f"algorithm must be an Algorithm, got {algorithm!r}")
    rule = mapping_of(algorithm.config).follow(mapping, names, now)
    for group, config in groups_of(algorithm):
        check_mapping(rule, algorithm, group, config)

    def follow(runner: Any) -> None:
        runner.config.multi_agent(policy_mapping_fn=rule)

    algorithm.config._is_frozen = False  # as RLlib does in add_module
    algorithm.config.multi_agent(policy_mapping_fn=rule)
    algorithm.config.freeze()
    for group, _ in groups_of(algorithm):
        group.foreach_env_runner(follow)


def _trained(learners: Iterable[int], rule: ModuleMapping, modules: Sequence[str]) -> list[str]:
    """Returns the modules of the policies to train, or raises an error if one is unknown."""
    if not isinstance(learners, Iterable) or isinstance(learners, str):
        raise TypeError(f"learners must be a sequence of policies, got {learners!r}")
    trained = [rule.module(integer("learners", policy, 0)) for policy in learners]
    for module in trained:
        if modules and module not in modules:
            raise ValueError(f"learners must have modules among {list(modules)}, got {module!r}")
    return trained


class CountersFirst:
    """Builds the existing connectors, with the counters in front."""

    def __init__(self, others: Callable[..., Any] | None) -> None:
        self.others = others

    def __call__(self, env: Any = None, spaces: Any = None, device: Any = None) -> list[Any]:
        """Returns the pieces of an env-to-module pipeline."""
        others = [] if self.others is None else self.others(env, spaces, device)
        return [EpisodeCounters(), *(others if isinstance(others, (list, tuple)) else [others])]
