"""Sample Factory (2.1.1): any `PolicyMapping` in place of its `AgentPolicyMapping`.

    from pz_policymap import Focal, Uniform
    from pz_policymap.adapters.sample_factory import use_mapping

    use_mapping(Focal(Uniform([0]), Uniform([1, 2, 3])))  # at module level

    if __name__ == "__main__":
        sys.exit(main())  # registers the environment, parses the arguments and calls run_rl, as always

Rollout workers are spawned: each imports the main module again, but not as `__main__`. Workers therefore do not run a
call of `use_mapping` under `if __name__ == "__main__"` or in `main()`, and would use Sample Factory's own mapping.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from pz_policymap.arguments import in_order
from pz_policymap.assigner import PolicyAssigner
from pz_policymap.assignment import cadence_of
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.conversion import MappingLike, as_mapping
from pz_policymap.mappings.fixed import ByEnvIndex, Fixed
from pz_policymap.mappings.uniform import Uniform

_ROLLOUTS = 2  # a block with fewer rollouts causes a warning


def use_mapping(
    mapping: MappingLike | None = None,
    *,
    resample_every: int | None = None,
    warmup_episodes: int = 0,
    agents: Sequence[Hashable] | None = None,
) -> None:
    """Makes all rollout workers use `mapping`; call it at module level.

    Invalid combinations raise before any worker starts.

    Args:
        mapping: As in `AgentPolicyMapping`.
        resample_every: Number of episodes between resamples, >= 1. None: 10, or 1 for mappings that are schedules.
        warmup_episodes: Number of first episodes that each resample, so that bugs surface early, >= 0.
        agents: Names of the agents in seat order.

    Raises:
        ImportError: If Sample Factory is not installed.
        TypeError: If an argument has the wrong type.
        ValueError: If a number is out of range.
    """
    rule = None if mapping is None else as_mapping(mapping)
    cadence_of(rule or Uniform(1), resample_every, warmup_episodes)
    settings = {"resample_every": resample_every, "warmup_episodes": warmup_episodes, "agents": agents}
    ours = partial(AgentPolicyMapping, mapping=rule, **settings)  # type: ignore[arg-type]  # one dict of many types
    sampling: Any = import_module("sample_factory.algo.sampling.non_batched_sampling")
    runner: Any = import_module("sample_factory.algo.runners.runner")
    sampling.AgentPolicyMapping = ours
    sampling.ActorState = _counted(_original(sampling.ActorState))
    runner.preprocess_cfg = _checked(_original(runner.preprocess_cfg), ours)


class AgentPolicyMapping:
    """Replaces Sample Factory's `AgentPolicyMapping`: draws for all agents of an environment at once.

    An actor asks for its policy at construction and whenever its agent is done, and thereby begins an episode. The
    first agent that asks again after it has begun the current episode begins the environment's next one. The other
    agents join it when they ask. If all agents of an environment end together, they share one draw, and environment i
    gets the assignments of `wrap(..., seed=cfg.seed, env_index=i)`. If they end at different times, an agent that is
    still in its episode keeps its policy until the episode ends.

    Episodes are counted from the start of the workers. Sample Factory saves no state of a mapping, so a resumed run
    starts at episode 0 again.

    Args:
        cfg: Sample Factory's configuration: `num_policies`, `seed`, `async_rl`, `batched_sampling`, `rollout`,
            `num_workers`, `num_envs_per_worker`. Its `seed` pins the assignments. None: taken from OS entropy.
        env_info: Its `num_agents` is the number of seats.
        mapping: A `PolicyMapping`, its text form, a function (see `FromFunction`), or the size of a population. None:
            the rule of Sample Factory, `Uniform(cfg.num_policies, mix=cfg.pbt_mix_policies_in_one_env)`, or
            `ByEnvIndex(cfg.num_policies)` in synchronous mode.
        resample_every: Number of episodes between resamples, >= 1. A change of policy in the middle of a rollout costs
            the framework a trajectory buffer, so a block should last many rollouts.
        warmup_episodes: Number of first episodes that each resample, so that bugs surface early, >= 0.
        agents: Names of the agents in seat order, for mappings that read them (`Roles`, `Teams`). None: 0, 1, ...

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If the mapping has more policies than `cfg.num_policies`, spans too few environments, or needs a
            seed and `cfg.seed` is None. In synchronous mode, if the mapping is not `ByEnvIndex` or `Fixed`, or if its
            policies do not control equally many seats: the framework would wait forever. With batched sampling, which
            does not use a mapping.

    Example:
        >>> from types import SimpleNamespace
        >>> from pz_policymap import Uniform
        >>> cfg = SimpleNamespace(num_policies=4, seed=0, async_rl=True, batched_sampling=False, rollout=32,
        ...                       num_workers=2, num_envs_per_worker=2)
        >>> policies = AgentPolicyMapping(cfg, SimpleNamespace(num_agents=2), Uniform(4))
        >>> [[policies.get_policy_for_agent(agent, env % 2, env) for agent in (0, 1)] for env in range(4)]
        [[0, 2], [0, 0], [3, 3], [3, 3]]
    """

    def __init__(
        self,
        cfg: Any,
        env_info: Any,
        mapping: MappingLike | None = None,
        *,
        resample_every: int | None = None,
        warmup_episodes: int = 0,
        agents: Sequence[Hashable] | None = None,
    ) -> None:
        self.num_policies: int = cfg.num_policies
        self.mapping = _published(cfg) if mapping is None else as_mapping(mapping)
        names = tuple(range(env_info.num_agents)) if agents is None else in_order("agents", agents)
        if len(names) != env_info.num_agents:
            raise ValueError(f"agents must name each of the {env_info.num_agents} agents, got {list(names)}")
        self._new_assigner = partial(
            PolicyAssigner,
            self.mapping,
            names,
            resample_every=resample_every,
            warmup_episodes=warmup_episodes,
            seed=cfg.seed,
        )
        self._rollout: int = cfg.rollout
        self._environments: dict[int, _Environment] = {}
        self._check(cfg)

    def get_policy_for_agent(self, agent_idx: int, env_idx: int, global_env_idx: int) -> int:  # noqa: ARG002
        """Begins an agent's next episode and returns the policy that controls it.

        Args:
            agent_idx: The seat, >= 0.
            env_idx: Index of the environment in its runner; unused, because it is not unique.
            global_env_idx: Index of the environment among those of all workers, >= 0.

        Raises:
            ValueError: If the mapping fails, or draws a policy >= `cfg.num_policies`.
        """
        environment = self._environments.get(global_env_idx)
        if environment is None:
            environment = _Environment(self._new_assigner(env_index=global_env_idx))
            self._environments[global_env_idx] = environment
        if environment.begins(agent_idx):
            self._check_draw(environment)
        return int(environment.assigner.policy_ids[0, agent_idx])

    def count_step(self, agent_idx: int, global_env_idx: int) -> None:
        """Counts a step of an agent, to detect blocks that are too short.

        Called by the actors that `use_mapping` installs.

        Args:
            agent_idx: The seat; only seat 0 is counted.
            global_env_idx: As in `get_policy_for_agent`.
        """
        if agent_idx == 0:
            self._environments[global_env_idx].steps += 1

    def _check_draw(self, environment: _Environment) -> None:
        """Raises an error if the new draw has an unknown policy, and warns if the last block was too short."""
        highest = int(environment.assigner.policy_ids.max())
        if highest >= self.num_policies:
            raise ValueError(
                f"{self.mapping!r} must draw policies below cfg.num_policies={self.num_policies}, "
                f"got {highest} in environment {environment.assigner.env_index}"
            )
        steps, environment.steps = environment.steps, 0
        last, environment.drawn = environment.drawn, int(environment.assigner.draw_episode[0])
        if last < environment.assigner.cadence.warmup_episodes:  # a warmup episode, or no block yet
            return
        if 0 < steps < _ROLLOUTS * self._rollout:
            # The text is constant, so that Python shows it once per process.
            warnings.warn(
                f"a block of {environment.assigner.cadence.resample_every} episodes lasted less than {_ROLLOUTS} "
                f"rollouts of {self._rollout} steps. Each change of policy in the middle of a rollout takes another "
                f"trajectory buffer, and the framework may run out of them. Raise resample_every or lower cfg.rollout, "
                f"so that a block lasts many rollouts",
                stacklevel=3,
            )

    def _check(self, cfg: Any) -> None:
        """Raises an error if the framework cannot train with this mapping."""
        rule, name = self.mapping, repr(self.mapping)
        num_envs = cfg.num_workers * cfg.num_envs_per_worker
        if cfg.batched_sampling:
            raise ValueError(
                f"batched_sampling must be False for {name}: batched sampling uses no mapping, worker i has "
                f"policy i % num_policies"
            )
        if rule.num_policies is not None and rule.num_policies > self.num_policies:
            raise ValueError(
                f"cfg.num_policies must be at least {rule.num_policies} for {name}, got {cfg.num_policies}"
            )
        if rule.needs_seed and cfg.seed is None:
            raise ValueError(
                f"cfg.seed must be an integer for {name}, whose environments share it, got None; pass --seed=0"
            )
        if rule.num_envs is not None and rule.num_envs < num_envs:
            raise ValueError(
                f"num_envs of {name} must be at least {num_envs} (num_workers={cfg.num_workers} with "
                f"num_envs_per_worker={cfg.num_envs_per_worker}), got {rule.num_envs}"
            )
        assigner = self._new_assigner(num_envs=num_envs, env_index=0)  # checks agents and cadence
        if cfg.async_rl or self.num_policies == 1:
            return
        if not isinstance(rule, (ByEnvIndex, Fixed)):
            raise ValueError(
                f"mapping must be ByEnvIndex({self.num_policies}) or Fixed with async_rl=False, got {name}: the "
                f"framework waits until all policies have collected the same number of rollouts"
            )
        seats = np.bincount(assigner.begin_episodes().reshape(-1), minlength=self.num_policies)
        if (seats != seats[0]).any():
            raise ValueError(
                f"mapping must give all {self.num_policies} policies equally many seats with async_rl=False, got "
                f"{seats.tolist()} from {name} in {num_envs} environments: the framework would wait forever"
            )


class _Environment:
    """One environment: its assigner, the agents that have begun its current episode, and the steps of its block."""

    def __init__(self, assigner: PolicyAssigner) -> None:
        self.assigner = assigner
        self.steps = 0
        self.drawn = -1  # the episode of the latest draw
        self._begun: set[int] = set()

    def begins(self, agent_idx: int) -> bool:
        """Begins an agent's episode; returns whether this made a draw that changed the assignment."""
        if self._begun and agent_idx not in self._begun:
            self._begun.add(agent_idx)
            return False
        before = self.assigner.policy_ids
        self._begun = {agent_idx}
        return not np.array_equal(self.assigner.begin_episodes(), before)


def _published(cfg: Any) -> PolicyMapping:
    """Returns the mapping that Sample Factory's own class uses."""
    if not cfg.async_rl:
        return ByEnvIndex(cfg.num_policies)
    return Uniform(cfg.num_policies, mix=getattr(cfg, "pbt_mix_policies_in_one_env", False))


def _original(installed: Any) -> Any:
    """Returns the framework's own object, also after an earlier `use_mapping`."""
    return getattr(installed, "original", installed)


def _counted(actor_state: Any) -> Any:
    """Returns the framework's actor class, extended to report each step to the mapping."""

    class ActorState(actor_state):  # type: ignore[misc]  # the framework has no types where it is not installed
        original = actor_state

        def record_env_step(self, *args: Any, **kwargs: Any) -> Any:
            self.policy_mgr.count_step(self.agent_idx, self.global_env_idx)
            return super().record_env_step(*args, **kwargs)

    return ActorState


def _checked(preprocess_cfg: Callable[..., bool], ours: Callable[..., AgentPolicyMapping]) -> Callable[..., bool]:
    """Returns the framework's check of a configuration, extended by the checks of the mapping."""

    def checked(cfg: Any, env_info: Any) -> bool:
        ours(cfg, env_info)
        return preprocess_cfg(cfg, env_info)

    checked.original = preprocess_cfg  # type: ignore[attr-defined]
    return checked
