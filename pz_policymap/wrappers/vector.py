"""`PolicyMapVector`: tags the infos of a vector environment, many policies in one batch."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from pz_policymap.arguments import in_order, integer, text
from pz_policymap.assigner import PolicyAssigner
from pz_policymap.assignment import PolicyIds
from pz_policymap.mappings.conversion import MappingLike
from pz_policymap.wrappers.autoreset import declared_mode, undeclared_mode
from pz_policymap.wrappers.pettingzoo_tags import FORCED
from pz_policymap.wrappers.reset_options import forced_matchup, taken
from pz_policymap.wrappers.vector_episodes import RowPolicies
from pz_policymap.wrappers.vector_infos import FINAL, Finished, check_free, tagged_dict, tagged_list, unpacked

if TYPE_CHECKING:
    from gymnasium.vector import AutoresetMode  # which Gymnasium 1.0 does not have

MASK = "reset_mask"  # the key in reset's options that says which rows are reset


class PolicyMapVector(VectorWrapper):
    """Tags the infos of a vector environment with the policy that plays each row, at `reset` and at every `step`.

    `infos["policy_id"]` is an integer array, one policy a row, with its mask `infos["_policy_id"]`. The arrays are
    read-only and are replaced, never written to, so they may be kept. A list of infos (SuperSuit's) has a plain int in
    each. Row i is environment `env_index + i`: pinned, it plays what the i-th of `env_fns` would.

    With `agents=k`, rows come in groups of k: the seats of environment 0, then those of environment 1, and so on. Each
    group is one draw. Its episode is over when every row has ended once since it began; rows that end earlier keep
    their policy until then. Where rows respawn the simulator alone can tell: see `end_episodes`.

    When the next policies come depends on the environment's autoreset mode:

    - NEXT_STEP: with the observation of the step that resets.
    - SAME_STEP: in the step that ends an episode, beside the next one's observation. The finished one's policies are
      in `infos["final_info"]["policy_id"]`.
    - DISABLED: with `reset(options={"reset_mask": mask})`, which begins episodes in the other modes, too.

    It tells what wrappers inside the vectoriser would, with one exception: after an explicit reset in NEXT_STEP,
    Gymnasium's `AsyncVectorEnv(shared_memory=False)` resets those sub-environments once more, unseen from outside.

    Args:
        env: A vector environment.
        mapping: Who plays whom: a `PolicyMapping`, a function (see `FromFunction`) or the size of a population.
        resample_every: Episodes a draw is held for, from 1.
        warmup_episodes: How many episodes at the start draw each for itself, so that a fault shows early.
        seed: Pins the assignments: `reset(seed=...)` seeds the environments alone then. None: `reset(seed=s)` also
            starts the assignments again at episode 0, and without any seed they come from the operating system.
        env_index: The index of the first environment, from 0.
        info_key: The key of the tag. One that the environment uses itself is an error.
        agents: How many rows one environment has, or the names of its agents in seat order; a count names them
            "agent_0", "agent_1" and so on.
        autoreset_mode: Where the environment does not declare it. "Disabled" may also be given where it does: no
            episode ends by itself then, `reset` and `end_episodes` say so.

    Attributes:
        assigner: The `PolicyAssigner` behind the tags, with an environment for every group of rows.
        info_key: The key of the tag.
        agents: The agents of one environment in seat order, each of which has a row.

    Raises:
        TypeError: If an argument has the wrong type, `env` included.
        ValueError: If a number is out of range, if the rows are no multiple of the agents, if `autoreset_mode` is not
            known or contradicts the environment, or if the mapping cannot serve these agents or needs a `seed`; at
            reset and at a step, if `info_key` is taken or the mapping fails; at the first reset, if neither the
            environment nor the caller says how it resets itself.
        ResetNeeded: At a step before the first reset, or after a step or a reset that failed in a draw or for a taken
            `info_key`.

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
        resample_every: int = 10,
        warmup_episodes: int = 0,
        seed: int | Sequence[int] | None = None,
        env_index: int | None = None,
        info_key: str = "policy_id",
        agents: int | Sequence[Hashable] = 1,
        autoreset_mode: AutoresetMode | str | None = None,
    ) -> None:
        if not isinstance(env, VectorEnv):
            raise TypeError(f"env must be a gymnasium.vector.VectorEnv, got {env!r}")
        super().__init__(env)
        names = agent_names(agents)
        if not names or env.num_envs % len(names):
            raise ValueError(f"agents must divide the {env.num_envs} rows of the environment, got {len(names)} agents")
        self.info_key = text("info_key", info_key)
        self.assigner = PolicyAssigner(
            mapping,
            names,
            env.num_envs // len(names),
            resample_every=resample_every,
            warmup_episodes=warmup_episodes,
            seed=seed,
            env_index=0 if env_index is None else env_index,
        )
        self._autoreset = declared_mode(env, autoreset_mode)
        self._takes_mask = self._autoreset is not None
        self.agents = self.assigner.agents  # now: a state that is loaded may know agents that came late
        self._rows = RowPolicies(self.assigner)
        self._failed = False  # in the middle of a reset or a step, which may leave some episodes without a draw
        self._everyone = np.ones(env.num_envs, np.bool_)  # the mask of the tag
        self._everyone.flags.writeable = False
        self.assigner.watch(self._rows.unfinished)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._everyone.flags.writeable = False  # which NumPy forgets in a copy
        self.assigner.watch(self._rows.unfinished)  # which a copied assigner leaves behind

    @property
    def policy_ids(self) -> PolicyIds:
        """The policy that plays each row in its episode, forced ones included; read-only, shape `(num_envs,)`.

        Raises:
            AttributeError: Before the first reset.
        """
        if self._rows.policy_ids is None:
            raise AttributeError("policy_ids cannot be accessed before reset")
        return self._rows.policy_ids

    def set_mapping(self, mapping: MappingLike, now: bool = False) -> None:
        """Follows another rule from the next draws on; the assignments in force stay.

        Args:
            mapping: A `PolicyMapping`, a function (see `FromFunction`) or the size of a population.
            now: Whether every environment draws when its next episode begins, whatever the cadence.

        Raises:
            TypeError, ValueError: As at construction; the old mapping stays then.
        """
        self.assigner.set_mapping(mapping, now)

    def end_episodes(self, envs: ArrayLike) -> PolicyIds:
        """Begins the next episode of some environments, for simulators that alone know when one is over.

        Call it after the step whose observation is the first of the new episode. Wrap with
        `autoreset_mode="Disabled"`, so that rows which end and respawn end no episode.

        Args:
            envs: Which environments: a boolean mask of shape `(num_envs // k,)`, or their numbers from 0.

        Returns:
            `policy_ids` after it.

        Raises:
            TypeError, ValueError: If `envs` is neither, or if the mapping fails. Nothing has changed then.
            ResetNeeded: Before the first reset.
        """
        self._require_reset("end_episodes")
        chosen, count = np.asarray(envs), self.assigner.num_envs
        if chosen.dtype == np.bool_:
            if chosen.shape != (count,):
                raise ValueError(f"envs must be a mask of shape ({count},), one an environment, got {chosen.shape}")
            chosen = np.flatnonzero(chosen)
        if chosen.size:
            self._rows.begin(chosen)
        return self.policy_ids

    @override
    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Any]:
        """Resets environments, begins their episodes, and draws where a draw is due.

        Args:
            seed: Seeds the environments. Where the assignments are not pinned it also starts them again at episode 0:
                a list of seeds is one seed; one with a None in it, or together with a `reset_mask`, seeds the
                environments alone.
            options: Go to the environment, but for `policy_ids`, a matchup for this episode only: a policy for all
                rows, a dict from agent to policy, or an integer array of one a row, -1 as drawn. `reset_mask`, a
                boolean array of shape `(num_envs,)`, is which rows are reset.

        Raises:
            TypeError, ValueError: If an argument is not of the kind above, if a mask takes part of an environment's
                rows, if the environment's infos use `info_key`, or if the mapping fails. No episode has begun then.
            KeyError: If a matchup is forced for an agent that is not there.
        """
        (forced, mask), options = taken(options, FORCED, MASK)
        envs = None if mask is None else self._masked(mask)
        matchup = None if forced is None else forced_matchup(forced, self.assigner, self.agents)
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]  # lists are taken
        self._failed = True  # whatever raises from here on: the environment has begun anew
        infos = self._readable(infos)
        self._rows.begin(envs, _seed_of_all(seed) if envs is None else None, matchup)
        tagged = self._tagged(infos, None)
        self._failed = False
        return observations, tagged

    @override
    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Steps the environments; the infos that come back are tagged, terminal ones included."""
        self._require_reset("step")
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        self._failed = True  # whatever raises from here on, a Ctrl-C included: the environment has gone on
        infos = self._readable(infos)
        played = self.policy_ids
        finished = self._rows.after_step(self._autoreset, terminations, truncations)
        if finished is None and isinstance(infos, dict) and FINAL in infos:
            finished = Finished(played, ~self._everyone)  # rows that ended before the episode of their environment did
        tagged = self._tagged(infos, finished)
        self._failed = False
        return observations, rewards, terminations, truncations, tagged

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Calls a method of every sub-environment, or gets an attribute, where the environment can."""
        return self.env.call(name, *args, **kwargs)  # type: ignore[attr-defined]

    def get_attr(self, name: str) -> Any:
        """Gets an attribute of every sub-environment, where the environment can."""
        return self.env.get_attr(name)  # type: ignore[attr-defined]

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of every sub-environment, where the environment can."""
        self.env.set_attr(name, values)  # type: ignore[attr-defined]

    def _readable(self, infos: Any) -> Any:
        """Returns the infos as a dict of arrays or a list with a dict a row, or raises where the tag has no place."""
        if not isinstance(infos, dict):
            infos = unpacked(infos, getattr(self.env.unwrapped, "idx_starts", None))
        if self._autoreset is None:
            self._autoreset = undeclared_mode(self.env, infos)
        check_free(infos, self.info_key)
        if isinstance(infos, dict):
            check_free(infos, f"_{self.info_key}")  # the mask of the tag
        return infos

    def _tagged(self, infos: Any, finished: Finished | None) -> Any:
        if isinstance(infos, dict):
            return tagged_dict(infos, self.info_key, self.policy_ids, self._everyone, finished)
        return tagged_list(infos, self.info_key, self.policy_ids, finished)

    def _masked(self, mask: Any) -> NDArray[np.intp]:
        """Returns the environments that a mask of rows takes whole, or raises."""
        name, rows, seats = f"options[{MASK!r}]", np.asarray(mask), len(self.agents)
        if rows.dtype != np.bool_:
            raise TypeError(f"{name} must be a boolean array, got {mask!r}")
        if rows.shape != (self.num_envs,):
            raise ValueError(f"{name} must have shape ({self.num_envs},), got {rows.shape}")
        if not self._takes_mask:
            raise ValueError(f"{name} would reset all rows: {self.env} declares no autoreset_mode and knows no masks")
        groups = rows.reshape(-1, seats)
        if (groups != groups[:, :1]).any():
            raise ValueError(f"{name} must take the {seats} rows of an environment together, got {mask!r}")
        if (self._rows.policy_ids is None or self._failed) and not rows.all():
            raise ValueError(
                f"{name} must take all rows at the first reset and after a failed reset or step, got {mask!r}"
            )
        return np.flatnonzero(groups[:, 0])

    def _require_reset(self, name: str) -> None:
        if self._rows.policy_ids is None:
            raise ResetNeeded(f"{name} cannot be called before reset")
        if self._failed:
            raise ResetNeeded(
                f"{name} cannot be called: a draw failed in the last step or reset, or infos could not be tagged, "
                "so all must be reset"
            )


def agent_names(agents: int | Sequence[Hashable]) -> Sequence[Hashable]:
    """Returns the names of the agents of one environment, a count's made up."""
    if isinstance(agents, Iterable) and not isinstance(agents, (str, bytes)):
        return in_order("agents", agents)
    return [f"agent_{seat}" for seat in range(integer("agents", agents, 1))]


def _seed_of_all(seed: Any) -> Any:
    """Returns a seed of the vector as the assigner takes it: None where only some environments are seeded."""
    if isinstance(seed, Iterable):
        seeds = list(seed)
        return None if None in seeds else seeds
    return seed
