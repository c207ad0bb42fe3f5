"""`PolicyMapMultiAgentVector`: tags the infos of a simulator whose dicts go from agent to batched arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import VectorEnv
from typing_extensions import Unpack

from pz_policymap.arguments import in_order, integer, row_numbers
from pz_policymap.batching.nested_arrays import first_leaf, on_host
from pz_policymap.mappings.conversion import MappingLike
from pz_policymap.wrappers.autoreset import Autoreset, undeclared
from pz_policymap.wrappers.done_flags import AgentFlags
from pz_policymap.wrappers.policy_wrapper import WrapOptions, check_free, split_options
from pz_policymap.wrappers.reset_options import FORCED, forced_matchup, taken
from pz_policymap.wrappers.vector_agents import check_named
from pz_policymap.wrappers.vector_episodes import MASK, Envs, VectorEpisodes, mask_on_host
from pz_policymap.wrappers.vector_infos import FINAL, Finished, tagged_dict
from pz_policymap.wrappers.vector_wrapper import VectorPolicyWrapper, seed_of_all

if TYPE_CHECKING:
    from gymnasium.vector import AutoresetMode  # which Gymnasium 1.0 does not have


class PolicyMapMultiAgentVector(VectorPolicyWrapper):
    """Tags the infos of a batched multi-agent simulator: many environments of several agents, stepped at once.

    For simulators whose `reset` and `step` return dicts from agent to arrays with a leading `num_envs`: Isaac Lab's
    `DirectMARLEnv`, VMAS with `dict_spaces=True`, AgileRL's `AsyncPettingZooVecEnv`, and JAX simulators behind a class
    with `reset` and `step`. Arrays may be NumPy, torch on any device, or JAX outside of `jit`.

    `infos[agent]["policy_id"]` is an integer array of shape `(num_envs,)`, with its mask `"_policy_id"`. If a simulator
    has one info dict for all agents, it gets one entry per agent for the tag; its own entries pass untouched.
    `policy_ids` has shape `(num_envs, num_agents)`. With a `seed`, environment i gets the same policies as the i-th of
    `env_fns`. `step` returns what the simulator returns, tagged: five values, or four if it has one kind of done flag.

    The done flags are dicts from agent to array, or one array for all agents (also under the key "__all__"), each of
    shape `(num_envs,)`. An episode ends when each agent has ended at least once, or with the flag for all. A simulator
    may have a mask `reset_buf` of the environments it has just reset, as in Isaac Lab; it replaces the flags. The
    autoreset mode decides when the tag of the next episode appears:

    - NEXT_STEP: with the observation of the step that resets.
    - SAME_STEP: in the step that ends an episode, beside the next episode's observation. The policies of the finished
      episode are in `infos[agent]["final_info"]["policy_id"]`.
    - DISABLED: after a reset by the caller, with `reset_at` or `reset(options={"reset_mask": mask})`.

    A step moves at most one array of done flags to the host, and none with `episode_length`. Other attributes are
    forwarded to the simulator.

    A loop inside `jax.jit` needs no wrapper. The host makes a table of the next blocks, and `scan` carries the number
    of finished episodes of each environment, which indexes it:

        envs, first_episodes = np.arange(num_envs)[:, np.newaxis], every * np.arange(blocks)
        table = pm.assignments(mapping, agents, seed=0, env_index=envs, episode=first_episodes, resample_every=every)
        # inside jit, with jnp.asarray(table) of shape (num_envs, blocks, num_agents) as an argument:
        policy_ids = jnp.take_along_axis(table, (episode // every)[:, None, None], axis=1)[:, 0]

    Args:
        env: The simulator. It has `reset`, `step`, `num_envs`, and `possible_agents` or `agents`.
        mapping: As in `wrap`.
        agents: The agents of one environment in seat order, the keys of its dicts. None: its `possible_agents`, or its
            `agents` or their names.
        autoreset_mode: "NextStep", "SameStep" or "Disabled" (the caller resets). Required if `env.metadata` does not
            declare it; Isaac Lab's and AgileRL's simulators use "SameStep", and those of VMAS "Disabled".
        episode_length: Number of steps of every episode, >= 1, if it is fixed: done flags are then not read. None: the
            flags are read.
        **options: As in `wrap`; `env_index` is the index of the first environment, 0 by default.

    Attributes:
        assigner: The `PolicyAssigner` behind the tags.
        info_key: The key of the tag.
        agents: The agents of one environment in seat order.
        flags: Reads the done flags of the simulator.

    Raises:
        TypeError: If an argument has the wrong type, or if the simulator returns something else than dicts by agent.
        ValueError: At construction, if a number is out of range, if the mode is missing or contradicts the simulator,
            or if the mapping cannot serve these agents or needs a `seed`. At reset and step, if `info_key` is taken,
            if the mapping fails, or if arrays do not have `num_envs` rows.
        ResetNeeded: At a step before the first reset, or after a reset or step that raised such an error.

    Example:
        >>> import numpy as np
        >>> from pz_policymap import PolicyMapMultiAgentVector
        >>> class Simulator:
        ...     num_envs, possible_agents = 3, ["red", "blue"]
        ...     def reset(self):
        ...         return {agent: np.zeros((3, 2)) for agent in self.possible_agents}, {}
        ...     def step(self, actions):
        ...         observations, infos = self.reset()
        ...         rewards = {agent: np.zeros(3) for agent in observations}
        ...         return observations, rewards, np.array([False, True, False]), infos
        >>> env = PolicyMapMultiAgentVector(Simulator(), 8, autoreset_mode="SameStep", resample_every=1, seed=0)
        >>> observations, infos = env.reset()
        >>> infos["blue"]["policy_id"].tolist(), env.policy_ids.tolist()
        ([5, 1, 7], [[1, 5], [0, 1], [6, 7]])
        >>> observations, rewards, dones, infos = env.step({})
        >>> env.policy_ids.tolist()  # the second environment has begun its next episode
        [[1, 5], [0, 7], [6, 7]]
    """

    def __init__(
        self,
        env: Any,
        mapping: MappingLike,
        *,
        agents: Sequence[Hashable] | None = None,
        autoreset_mode: AutoresetMode | str | None = None,
        episode_length: int | None = None,
        **options: Unpack[WrapOptions],
    ) -> None:
        num_envs, known = _attribute(env, "num_envs"), agents_of_simulator(env) if agents is None else agents
        if num_envs is None or known is None:
            raise TypeError(f"env must have num_envs and possible_agents or agents, got {env!r}; or pass agents")
        self.env = env
        settings, self.info_key = split_options(options)
        names, count = in_order("agents", known), integer("env.num_envs", num_envs, 1)
        own = _attribute(env, "possible_agents")
        self._named = isinstance(own, (list, tuple)) and bool(own)  # or else by the keys of the first observations
        if self._named and agents is not None:
            check_named(names, agents_of_simulator(env) or ())
        self.flags = AgentFlags(getattr(env, "unwrapped", env), names, count)
        episodes = VectorEpisodes.of(env, count, len(names), autoreset_mode, length=episode_length, read=self.flags)
        if episodes.autoreset is None:
            raise undeclared(env)
        self._manage(mapping, names, episodes, (count, len(names)), settings)
        self._everyone = np.ones(count, np.bool_)  # the mask of the tag

    def __getattr__(self, name: str) -> Any:
        if name == "policy_ids":  # raised by the property, and hidden by Python
            raise AttributeError("policy_ids cannot be accessed before reset")
        if name.startswith("_") or name == "env":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.env, name)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[Any, Any]]:
        """Resets environments, begins their episodes, and draws where a draw is due.

        Args:
            seed: Seeds the simulator, if it takes seeds. Unless the assignments are pinned, it also restarts the
                assignment schedule at episode 0. A seed together with a `reset_mask` seeds the simulator only.
            options: Passed to the simulator, except `policy_ids`: a matchup for this episode only, given as one policy
                for all, a dict from agent to policy, or an integer array of shape `(num_envs, num_agents)` (-1: as
                drawn). `reset_mask`, booleans of shape `(num_envs,)`, selects the environments to reset; only for
                simulators that the caller resets.

        Returns:
            Observations and infos, also of a simulator that returns observations only.

        Raises:
            TypeError, ValueError: If an argument is not as above, if the simulator's infos use `info_key`, or if the
                mapping fails. No episode has begun then.
            KeyError: If a matchup names an agent that does not exist.
        """
        (mask,), _ = taken(options, MASK)
        envs = None if mask is None else self._masked(mask)
        given = {} if seed is None else {"seed": seed}
        return self._reset(self.env.reset, given, envs, options, seed_of_all(seed) if envs is None else None)

    def reset_at(self, index: Any, *, options: dict[str, Any] | None = None) -> tuple[Any, dict[Any, Any]]:
        """Resets one environment with the simulator's `reset_at`, as those of VMAS have, and begins its next episode.

        Args:
            index: Index of the environment, >= 0; or several, if the simulator takes them.
            options: As in `reset`; only `policy_ids` for most simulators.

        Returns:
            Observations and infos of all environments.

        Raises:
            ResetNeeded: Before the first whole reset.
            TypeError, ValueError, KeyError: As in `reset`.
        """
        self._require_reset("reset_at")
        envs = row_numbers("index", np.atleast_1d(on_host(index)), self.assigner.num_envs)
        return self._reset(self.env.reset_at, {"index": index}, envs, options)

    def step(self, actions: Any) -> tuple[Any, ...]:
        """Steps the environments and tags the infos, terminal ones included."""
        previous = self._require_reset("step")
        observations, rewards, *ends, infos = self.env.step(actions)
        self._failed = True  # if anything below raises, a KeyboardInterrupt included: the simulator has advanced
        self._check(observations, infos)
        finished = self._rows.after_step(*ends)
        tagged = self._tagged(infos, finished, previous)
        self._failed = False
        return (observations, rewards, *ends, tagged)

    def _reset(
        self,
        method: Callable[..., Any],
        given: dict[str, Any],
        envs: Envs | None,
        options: dict[str, Any] | None,
        seed: Any = None,
    ) -> tuple[Any, dict[Any, Any]]:
        """Resets environments (None: all) by a method of the simulator, and begins their episodes."""
        (forced,), options = taken(options, FORCED)
        matchup = None if forced is None else forced_matchup(forced, self.assigner, self.agents)
        if options is not None:
            given["options"] = options
        accepted = inspect.signature(method).parameters
        if "seed" not in accepted and not any(each.kind is each.VAR_KEYWORD for each in accepted.values()):
            given.pop("seed", None)
        if "return_info" in accepted:  # of VMAS
            given["return_info"] = True
        outcome = method(**given)
        self._failed = True  # if anything below raises: the simulator has begun an episode
        observations, infos = outcome if isinstance(outcome, (tuple, list)) and len(outcome) == 2 else (outcome, {})
        self._check(observations, infos)
        if not self._named and observations.keys() - set(self.agents):  # no key left over: the others may join later
            check_named(self.agents, observations)
        self._named = True
        self._rows.begin(envs, seed, matchup)
        tagged = self._tagged(infos, None, self.policy_ids)
        self._failed = False
        return observations, tagged

    def _check(self, observations: Any, infos: Any) -> None:
        """Raises if observations or infos are not dicts by agent, with `num_envs` rows, without the key of the tag."""
        for name, given in (("observations", observations), ("infos", infos)):
            if not isinstance(given, Mapping):
                raise TypeError(f"{name} must be a dict from agent to arrays, got {given!r}; VMAS: dict_spaces=True")
        shape, count = getattr(first_leaf(observations), "shape", None), self.assigner.num_envs
        if shape is not None and tuple(shape[:1]) != (count,):
            raise ValueError(f"observations must have {count} rows, one per environment, got shape {tuple(shape)}")
        for agent in self.agents:
            info = infos.get(agent, {})
            if not isinstance(info, Mapping):
                raise TypeError(f"infos[{agent!r}] must be a dict, got {info!r}")
            check_free(info, self.info_key, agent)
            check_free(info, f"_{self.info_key}", agent)  # the mask of the tag

    def _tagged(self, infos: Any, finished: Finished | None, previous: Any) -> dict[Any, Any]:
        """Returns the infos with the tag of each agent, and with those of the finished episodes in `final_info`."""
        policy_ids, shape = self.policy_ids, self.policy_ids.shape
        self._everyone.flags.writeable = False  # set each time, because NumPy drops the flag in copies and pickles
        ended = ~self._everyone if finished is None else finished.rows.reshape(shape)[:, 0]
        tagged = dict(infos)
        for seat, agent in enumerate(self.agents):
            info = infos.get(agent, {})
            of_agent = None if finished is None and FINAL not in info else Finished(previous[:, seat], ended)
            tagged[agent] = tagged_dict(info, self.info_key, policy_ids[:, seat], self._everyone, of_agent)
        return tagged

    def _masked(self, mask: Any) -> Envs:
        """Returns the environments that a `reset_mask` selects, or raises."""
        envs = np.flatnonzero(mask_on_host(mask, self.assigner.num_envs))
        if self.episodes.autoreset is not Autoreset.DISABLED:
            raise ValueError(
                f"options[{MASK!r}] must be left out for {self.env!r}, which resets its environments by itself"
            )
        self._check_some(envs, mask)
        return envs


def is_simulator(env: Any) -> bool:
    """Returns whether an environment shows several environments and their agents, and is not a vector of Gymnasium's.

    Example:
        >>> import gymnasium
        >>> is_simulator(gymnasium.make("CartPole-v1"))
        False
    """
    count = _attribute(env, "num_envs")
    if isinstance(env, VectorEnv) or isinstance(count, bool) or not isinstance(count, (int, np.integer)):
        return False
    return agents_of_simulator(env) is not None


def agents_of_simulator(env: Any) -> tuple[Any, ...] | None:
    """Returns the `possible_agents` of a simulator, or else its `agents` or their names; None without any."""
    for attribute in ("possible_agents", "agents"):
        agents = _attribute(env, attribute)
        if isinstance(agents, (list, tuple)) and agents:
            return tuple(getattr(agent, "name", agent) for agent in agents)
    return None


def _attribute(env: Any, name: str) -> Any:
    """Returns an attribute of an environment, or of the one inside its wrappers, or None."""
    for layer in (env, getattr(env, "unwrapped", None)):
        value = getattr(layer, name, None)
        if value is not None:
            return value
    return None
