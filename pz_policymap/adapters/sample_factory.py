"""Sample Factory (2.1.1): any `PolicyMapping` in place of its `AgentPolicyMapping`.

    from pz_policymap import Focal, Uniform
    from pz_policymap.adapters.sample_factory import use_mapping

    use_mapping(Focal(Uniform([0]), Uniform([1, 2, 3])))  # at module level

    if __name__ == "__main__":
        sys.exit(main())  # registers the environment, parses the arguments and calls run_rl, as always

Its rollout workers are spawned: each imports the main module anew, but not as `__main__`. A call of `use_mapping` under
`if __name__ == "__main__"` or in `main()` is therefore never made in a worker, which then plays the published mapping.
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
from pz_policymap.cadence import Cadence
from pz_policymap.mappings.base import PolicyMapping
from pz_policymap.mappings.conversion import MappingLike, as_mapping
from pz_policymap.mappings.fixed import ByEnvIndex, Fixed
from pz_policymap.mappings.uniform import Uniform

_ROLLOUTS = 2  # a block of fewer rollouts than this is warned about


def use_mapping(
    mapping: MappingLike | None = None,
    *,
    resample_every: int = 10,
    warmup_episodes: int = 0,
    agents: Sequence[Hashable] | None = None,
) -> None:
    """Lets every rollout worker that this process or module starts ask `mapping`; call it at module level.

    What `AgentPolicyMapping` refuses is refused before any worker starts.

    Args:
        mapping: As in `AgentPolicyMapping`.
        resample_every: Episodes a draw is held for, from 1.
        warmup_episodes: How many episodes at the start draw each for itself.
        agents: The agents' names in seat order.

    Raises:
        ImportError: If Sample Factory is not installed.
        TypeError: If an argument has the wrong type.
        ValueError: If a number is out of range.
    """
    Cadence(resample_every, warmup_episodes)
    rule = None if mapping is None else as_mapping(mapping)
    settings = {"resample_every": resample_every, "warmup_episodes": warmup_episodes, "agents": agents}
    ours = partial(AgentPolicyMapping, mapping=rule, **settings)  # type: ignore[arg-type]  # one dict of many types
    sampling: Any = import_module("sample_factory.algo.sampling.non_batched_sampling")
    runner: Any = import_module("sample_factory.algo.runners.runner")
    sampling.AgentPolicyMapping = ours
    sampling.ActorState = _counted(_original(sampling.ActorState))
    runner.preprocess_cfg = _checked(_original(runner.preprocess_cfg), ours)


class AgentPolicyMapping:
    """Answers Sample Factory's actors, one agent at a time, from draws that are made for a whole environment at once.

    An actor asks when it is made and whenever its agent is done, and so begins an episode. The first agent that has
    begun the environment's current episode and asks again begins the environment's next one; the others join it when
    they ask. Where all agents of an environment end together, as a rule, they hold one draw, and environment i plays
    what `wrap(..., seed=cfg.seed, env_index=i)` plays. Where they end at different times, an agent that is still in an
    episode when others begin a new block plays it to the end and joins then, so that draws of different age stay side
    by side for the rest of that episode and no longer.

    Episodes are counted from the start of the workers: Sample Factory saves nothing of a mapping, so a run that is
    resumed begins at episode 0 again.

    Args:
        cfg: Sample Factory's configuration: `num_policies`, `seed`, `async_rl`, `batched_sampling`, `rollout`,
            `num_workers`, `num_envs_per_worker`. Its `seed` pins the assignments; None takes them from the operating
            system.
        env_info: Its `num_agents` is the number of seats.
        mapping: The rule: a `PolicyMapping`, a function or the size of a population. None: what the published class
            does, `Uniform(cfg.num_policies, mix=cfg.pbt_mix_policies_in_one_env)`, or `ByEnvIndex(cfg.num_policies)`
            in synchronous mode.
        resample_every: Episodes a draw is held for, from 1. Changing policies in mid-rollout costs the framework a
            trajectory buffer each time, so a block should last many rollouts.
        warmup_episodes: How many episodes at the start draw each for itself.
        agents: The agents' names in seat order, for mappings that read them (`Roles`, `Teams`). None: 0, 1, ...

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If the mapping plays more policies than there are, spans fewer environments, or needs a seed and
            `cfg.seed` is None; in synchronous mode, if it is not constant (`ByEnvIndex` or `Fixed`), or if its policies
            do not all play the same number of seats, for the framework would wait for ever; with batched sampling,
            where the framework asks no mapping.

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
        resample_every: int = 10,
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
        """Begins an agent's next episode and returns the policy that plays it.

        Args:
            agent_idx: The seat, from 0.
            env_idx: The environment's number in its runner; not looked at, for runners have the same numbers.
            global_env_idx: Its number among the environments of all workers, from 0.

        Raises:
            ValueError: If the mapping fails, or draws a policy that is not there.
        """
        environment = self._environments.get(global_env_idx)
        if environment is None:
            environment = _Environment(self._new_assigner(env_index=global_env_idx))
            self._environments[global_env_idx] = environment
        if environment.begins(agent_idx):
            self._look_at(environment)
        return int(environment.assigner.policy_ids[0, agent_idx])

    def count_step(self, agent_idx: int, global_env_idx: int) -> None:
        """Counts a step of an agent, so that a block which is too short is noticed.

        The actors that `use_mapping` installs call it.

        Args:
            agent_idx: The seat; the steps of seat 0 are the environment's.
            global_env_idx: As in `get_policy_for_agent`.
        """
        if agent_idx == 0:
            self._environments[global_env_idx].steps += 1

    def _look_at(self, environment: _Environment) -> None:
        """Raises where the new draw has a policy that is not there, and warns where the last block was too short."""
        highest = int(environment.assigner.policy_ids.max())
        if highest >= self.num_policies:
            raise ValueError(
                f"{self.mapping.fingerprint} must draw policies below cfg.num_policies={self.num_policies}, "
                f"got {highest} in environment {environment.assigner.env_index}"
            )
        steps, environment.steps = environment.steps, 0
        last, environment.drawn = environment.drawn, int(environment.assigner.draw_episode[0])
        if last < environment.assigner.cadence.warmup_episodes:  # short by intent; or there was none
            return
        if 0 < steps < _ROLLOUTS * self._rollout:
            # The text is always the same, so that Python shows it once a process.
            warnings.warn(
                f"a block of {environment.assigner.cadence.resample_every} episodes lasted less than {_ROLLOUTS} "
                f"rollouts of {self._rollout} steps: every change of policy in mid-rollout takes another trajectory "
                f"buffer, and the framework may run out of them; raise resample_every or lower cfg.rollout, until a "
                f"block lasts many rollouts",
                stacklevel=3,
            )

    def _check(self, cfg: Any) -> None:
        """Raises where the framework or the mapping could not go on."""
        rule, name = self.mapping, self.mapping.fingerprint
        num_envs = cfg.num_workers * cfg.num_envs_per_worker
        if cfg.batched_sampling:
            raise ValueError(
                f"batched_sampling must be False for {name}: with it the framework asks no mapping, and worker i "
                f"plays policy i % num_policies"
            )
        if rule.num_policies is not None and rule.num_policies > self.num_policies:
            raise ValueError(
                f"cfg.num_policies must be at least {rule.num_policies} for {name}, got {cfg.num_policies}"
            )
        if rule.needs_seed and cfg.seed is None:
            raise ValueError(f"cfg.seed must be given, for {name} spans environments that share it: --seed=0")
        if rule.num_envs is not None and rule.num_envs < num_envs:
            raise ValueError(
                f"{name} spans num_envs={rule.num_envs} environments, got {num_envs} of cfg: num_workers="
                f"{cfg.num_workers} with num_envs_per_worker={cfg.num_envs_per_worker}"
            )
        assigner = self._new_assigner(num_envs=num_envs, env_index=0)  # refuses agents and cadences
        if cfg.async_rl or self.num_policies == 1:
            return
        if not isinstance(rule, (ByEnvIndex, Fixed)):
            raise ValueError(
                f"async_rl=False needs a mapping that is constant, as ByEnvIndex({self.num_policies}) is, got {name}; "
                f"the framework waits until every policy has collected the same number of rollouts"
            )
        seats = np.bincount(assigner.begin_episodes().reshape(-1), minlength=self.num_policies)
        if (seats != seats[0]).any():
            raise ValueError(
                f"async_rl=False needs a mapping that gives all {self.num_policies} policies the same number of seats, "
                f"or the framework waits for ever; {name} gives them {seats.tolist()} in {num_envs} environments"
            )


class _Environment:
    """One environment: its assigner, who has begun its current episode, and for how many steps its draw has held."""

    def __init__(self, assigner: PolicyAssigner) -> None:
        self.assigner = assigner
        self.steps = 0
        self.drawn = -1  # the episode at which it was
        self._begun: set[int] = set()

    def begins(self, agent_idx: int) -> bool:
        """Begins an agent's episode; returns whether that was the first of a new draw that changed something."""
        if self._begun and agent_idx not in self._begun:
            self._begun.add(agent_idx)
            return False
        before = self.assigner.policy_ids
        self._begun = {agent_idx}
        return not np.array_equal(self.assigner.begin_episodes(), before)


def _published(cfg: Any) -> PolicyMapping:
    """Returns what the published class does, as a mapping."""
    if not cfg.async_rl:
        return ByEnvIndex(cfg.num_policies)
    return Uniform(cfg.num_policies, mix=getattr(cfg, "pbt_mix_policies_in_one_env", False))


def _original(installed: Any) -> Any:
    """Returns what the framework had before another `use_mapping`."""
    return getattr(installed, "original", installed)


def _counted(actor_state: Any) -> Any:
    """Returns the framework's class of actors, made to tell the mapping of every step."""

    class ActorState(actor_state):  # type: ignore[misc]  # the framework has no types where it is not installed
        original = actor_state

        def record_env_step(self, *args: Any, **kwargs: Any) -> Any:
            self.policy_mgr.count_step(self.agent_idx, self.global_env_idx)
            return super().record_env_step(*args, **kwargs)

    return ActorState


def _checked(preprocess_cfg: Callable[..., bool], ours: Callable[..., AgentPolicyMapping]) -> Callable[..., bool]:
    """Returns the framework's check of a configuration, made to refuse here what a worker would refuse."""

    def checked(cfg: Any, env_info: Any) -> bool:
        ours(cfg, env_info)
        return preprocess_cfg(cfg, env_info)

    checked.original = preprocess_cfg  # type: ignore[attr-defined]
    return checked
