"""`PolicyMapVector`: tags the infos of a vector environment, many policies in one batch."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import NDArray
from typing_extensions import Unpack, override

from pz_policymap.assignment import read_only
from pz_policymap.batching.nested_arrays import on_host
from pz_policymap.mappings.conversion import MappingLike
from pz_policymap.mappings.focal import Focal
from pz_policymap.wrappers.policy_wrapper import WrapOptions, check_free, reset_outcome, split_options
from pz_policymap.wrappers.reset_options import FORCED, forced_matchup, taken
from pz_policymap.wrappers.vector_agents import agents_of
from pz_policymap.wrappers.vector_episodes import MASK, Envs, VectorEpisodes
from pz_policymap.wrappers.vector_infos import (
    FINAL,
    Finished,
    check_rows,
    named_rows,
    tagged_dict,
    tagged_list,
    unpacked,
)
from pz_policymap.wrappers.vector_wrapper import VectorPolicyWrapper, seed_of_all

if TYPE_CHECKING:
    from gymnasium.vector import AutoresetMode  # which Gymnasium 1.0 does not have


class PolicyMapVector(VectorPolicyWrapper, VectorWrapper):
    """Tags the infos of a vector environment with the policy that controls each row, at `reset` and at every `step`.

    `infos["policy_id"]` is an integer array, one policy per row, with its mask `infos["_policy_id"]`. The arrays are
    read-only; they are replaced and never written to, so they may be kept. If infos are a list (SuperSuit's), each
    has a plain int. With a `seed`, environment i gets the same policies as the i-th of `env_fns`.

    With k `agents`, rows come in groups of k: the seats of environment 0, then those of environment 1, and so on. Each
    group is one draw. Its episode ends when every row has ended at least once; rows that end earlier keep their policy
    until then. If rows respawn, done flags do not mark the end of an episode: call `end_episodes`.

    The environment's autoreset mode decides when the tag of the next episode appears:

    - NEXT_STEP: with the observation of the step that resets.
    - SAME_STEP: in the step that ends an episode, beside the next episode's observation. The policies of the finished
      episode are in `infos["final_info"]["policy_id"]`.
    - DISABLED: after `reset(options={"reset_mask": mask})`, which begins episodes in the other modes, too.

    A batch may hold some of the rows in any order where `infos["env_id"]` names them, as EnvPool's do.

    Rewards, done flags and observations may be arrays or torch tensors; only done flags are copied to the host.

    After an explicit reset in NEXT_STEP, Gymnasium's `AsyncVectorEnv(shared_memory=False)` resets those
    sub-environments once more. This is the one reset that wrappers inside the vectorizer count and this one does not.

    Args:
        env: A vector environment.
        mapping: As in `wrap`.
        agents: Number of rows per environment, or the names of its agents in seat order; a number names them
            "agent_0", "agent_1", ... None: the agents that the environment declares, as SuperSuit's do, or else one.
        autoreset_mode: Required if the environment does not declare it. "Disabled" is always allowed: then episodes
            end at `reset` and `end_episodes` only.
        episode_length: Number of steps of every episode, >= 1, if it is fixed: done flags are then not read. None: the
            flags are read.
        **options: As in `wrap`; `env_index` is the index of the first environment, 0 by default.

    Attributes:
        assigner: The `PolicyAssigner` behind the tags, with one environment per group of rows.
        info_key: The key of the tag.
        agents: The agents of one environment in seat order; each has a row.

    Raises:
        TypeError: If an argument has the wrong type, `env` included.
        ValueError: At construction, if a number is out of range, if the rows are not a multiple of the agents, if
            `autoreset_mode` contradicts the environment, or if the mapping cannot serve these agents or needs a
            `seed`. At reset and step, if `info_key` is taken, if the mapping fails, or if rows are missing.
        ResetNeeded: At a step before the first reset, or after a reset or step that raised such an error.

    Example:
        >>> import gymnasium
        >>> from pz_policymap import PolicyMapVector
        >>> env = PolicyMapVector(gymnasium.make_vec("CartPole-v1", num_envs=4), 8, seed=0)
        >>> observations, infos = env.reset(seed=42)
        >>> infos["policy_id"]
        array([1, 0, 6, 6], dtype=int32)
    """

    def __init__(
        self,
        env: VectorEnv,
        mapping: MappingLike,
        *,
        agents: int | Sequence[Hashable] | None = None,
        autoreset_mode: AutoresetMode | str | None = None,
        episode_length: int | None = None,
        **options: Unpack[WrapOptions],
    ) -> None:
        if not isinstance(env, VectorEnv):
            raise TypeError(f"env must be a gymnasium.vector.VectorEnv, got {env!r}")
        VectorWrapper.__init__(self, env)
        names = agents_of(env, agents)
        settings, self.info_key = split_options(options)
        envs, seats = env.num_envs // len(names), len(names)
        episodes = VectorEpisodes.of(env, envs, seats, autoreset_mode, length=episode_length)
        self._manage(mapping, names, episodes, (env.num_envs,), settings)
        if agents is None and seats == 1 and isinstance(self.assigner.mapping, Focal):
            raise ValueError(
                f"agents must be given for {self.assigner.mapping!r}, whose background has no seat if each row is an "
                f"separate environment, got None"
            )
        self._takes_mask = episodes.autoreset is not None
        self._everyone = np.ones(env.num_envs, np.bool_)  # the mask of the tag

    @override
    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Any]:
        """Resets environments, begins their episodes, and draws where a draw is due.

        Args:
            seed: Seeds the environments. Unless the assignments are pinned, it also restarts the assignment schedule
                at episode 0; a list of seeds counts as one seed. A list with a None in it, or a seed together with a
                `reset_mask`, seeds the environments only.
            options: Passed to the environment, except `policy_ids`: a matchup for this episode only, given as one
                policy for all rows, a dict from agent to policy, or an integer array with one entry per row (-1: as
                drawn). `reset_mask`, a boolean array of shape `(num_envs,)`, selects the rows to reset.

        Raises:
            TypeError, ValueError: If an argument is not as above, if a mask selects only some rows of an environment,
                if the environment's infos use `info_key`, or if the mapping fails. No episode has begun then.
            KeyError: If a matchup names an agent that does not exist.
        """
        (forced, mask), options = taken(options, FORCED, MASK)
        envs = None if mask is None else self._masked(mask)
        matchup = None if forced is None else forced_matchup(forced, self.assigner, self.agents)
        outcome = self.env.reset(seed=seed, options=options)
        self._failed = True  # if anything below raises: the environment has begun an episode
        observations, infos = reset_outcome(outcome, self.env)
        infos, rows = self._checked(infos, observations)
        self.episodes.settle_mode(self.env, infos)
        self._rows.begin(envs, seed_of_all(seed) if envs is None else None, matchup)
        tagged = self._tagged(infos, None, rows)
        self._failed = False
        return observations, tagged

    @override
    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Steps the environments and tags the infos, terminal ones included."""
        previous = self._require_reset("step")
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        self._failed = True  # if anything below raises, a KeyboardInterrupt included: the environment has advanced
        infos, rows = self._checked(infos, terminations)
        ends = terminations, truncations
        finished = self._rows.after_step(*(ends if rows is None else self._of_all_rows(ends, rows)))
        if finished is None and isinstance(infos, dict) and FINAL in infos:
            finished = Finished(previous, ~self._everyone)  # rows that ended before their environment's episode did
        tagged = self._tagged(infos, finished, rows)
        self._failed = False
        return observations, rewards, terminations, truncations, tagged

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Calls a method, or gets an attribute, of every sub-environment, if the environment supports it."""
        return self.env.call(name, *args, **kwargs)

    def get_attr(self, name: str) -> Any:
        """Gets an attribute of every sub-environment, if the environment supports it."""
        return self.env.get_attr(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of every sub-environment, if the environment supports it."""
        self.env.set_attr(name, values)

    def _checked(self, infos: Any, values: Any) -> tuple[Any, NDArray[np.intp] | None]:
        """Returns the infos as a dict of arrays or one dict per row, and the rows of a batch that has only some.

        Raises an error if the tag cannot be added.
        """
        if not isinstance(infos, dict):
            infos = unpacked(infos, getattr(self.env.unwrapped, "idx_starts", None))
        rows = named_rows(self.num_envs, values, infos) if len(self.agents) == 1 else None
        if rows is None:
            check_rows(self.num_envs, values, infos)
        for info in (infos,) if isinstance(infos, dict) else infos:
            check_free(info, self.info_key)
        if isinstance(infos, dict):
            check_free(infos, f"_{self.info_key}")  # the mask of the tag
        return infos, rows

    def _of_all_rows(self, ends: Sequence[Any], rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Returns done flags of some rows as flags of all."""
        flags = np.zeros((len(ends), self.num_envs), np.bool_)
        flags[:, rows] = [on_host(end) for end in ends]
        return flags

    def _tagged(self, infos: Any, finished: Finished | None, rows: NDArray[np.intp] | None) -> Any:
        policy_ids = self.policy_ids
        if rows is not None:
            finished = None if finished is None else Finished(finished.policy_ids[rows], finished.rows[rows])
            policy_ids = read_only(policy_ids[rows])
            return tagged_dict(infos, self.info_key, policy_ids, self._everyone[rows], finished)
        if not isinstance(infos, dict):
            return tagged_list(infos, self.info_key, policy_ids, finished)
        self._everyone.flags.writeable = False  # set each time, because NumPy drops the flag in copies and pickles
        return tagged_dict(infos, self.info_key, policy_ids, self._everyone, finished)

    def _masked(self, mask: Any) -> Envs:
        """Returns the environments that a `reset_mask` selects, or raises."""
        envs = self.episodes.masked(mask)
        if not self._takes_mask:
            raise ValueError(f"options[{MASK!r}] would reset all rows: {self.env} does not declare an autoreset_mode")
        self._check_some(envs, mask)
        return envs
