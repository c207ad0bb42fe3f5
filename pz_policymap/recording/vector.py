"""`RecordResultsVector`: what `record_results` makes of a vector environment."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from pz_policymap.mappings.groups import GroupOf
from pz_policymap.recording.running_episode import Recording, Score, all_of
from pz_policymap.results.sums import added
from pz_policymap.wrappers.autoreset import NOBODY, Autoreset, Ends, declared_mode, undeclared_mode
from pz_policymap.wrappers.row_infos import policies_in, terminal_info
from pz_policymap.wrappers.vector import MASK, PolicyMapVector, agent_names
from pz_policymap.wrappers.vector_infos import unpacked

if TYPE_CHECKING:
    from gymnasium.vector import AutoresetMode  # which Gymnasium 1.0 does not have

Envs = NDArray[Any]  # the numbers of some environments, from 0


class RecordResultsVector(VectorWrapper):
    """Records what every episode of a vector environment ended with; see `record_results`.

    Where an environment has several rows, its episode is over when every row has ended once since it began: rewards
    of all its rows count until then, and a row's length is the number of steps to its first end. Attributes that are
    not here, such as `policy_ids`, are the environment's.
    """

    def __init__(
        self,
        env: VectorEnv,
        *sinks: Any,
        team_of: GroupOf | None = None,
        score: Score | None = None,
        info_key: str = "policy_id",
        agents: int | Sequence[Hashable] | None = None,
        autoreset_mode: AutoresetMode | str | None = None,
    ) -> None:
        super().__init__(env)
        self._recording = Recording(sinks, team_of, score, info_key)
        self._tagger = _policy_wrapper(env)
        if agents is None:
            agents = 1 if self._tagger is None else self._tagger.agents
        self._agents = tuple(agent_names(agents))
        seats = len(self._agents)
        if not seats or env.num_envs % seats:
            raise ValueError(f"agents must divide the {env.num_envs} rows of the environment, got {seats} agents")
        self._declared = declared_mode(env, None)
        self._autoreset = declared_mode(env, autoreset_mode)
        self._rows = np.arange(env.num_envs).reshape(-1, seats)  # of each environment
        self._ends = Ends(*self._rows.shape)
        self._policies = np.zeros(env.num_envs, np.int64)
        self._returns: NDArray[np.float64] = np.zeros((2, env.num_envs))  # rounded, and what rounding lost
        self._lengths = np.zeros(env.num_envs, np.int64)
        self._lasting = np.zeros(env.num_envs, np.int64)  # 1 for rows that have not ended since their episode began
        self._infos: dict[int, Any] = {}  # the last of each row, where a score asks for them
        self._playing = np.zeros(len(self._rows), np.bool_)  # whose episode is not recorded yet
        self._due: Envs = NOBODY  # whom the next step resets

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "env":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.env, name)

    @override
    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Any]:
        """Resets environments; episodes that have not ended are not recorded."""
        mask = (options or {}).get(MASK)  # before the environment takes it out
        envs: Envs = np.arange(len(self._rows))
        if mask is not None:
            if np.shape(mask) != (self.num_envs,):
                raise ValueError(f"options[{MASK!r}] must have shape ({self.num_envs},), got {np.shape(mask)}")
            envs = np.flatnonzero(np.array(mask, np.bool_)[self._rows].all(axis=1))
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]  # lists are taken
        played = self._played(envs[self._ends.over()[envs]])  # rows may live again: only now is their end certain
        self._playing[envs] = False
        if self._tagger is not None:
            self._autoreset = self._tagger._autoreset
        elif self._autoreset is None:
            self._autoreset = undeclared_mode(self.env, infos)
        self._due = np.setdiff1d(self._due, envs)
        all_of([partial(self._begin, envs, infos), *played])
        return observations, infos

    @override
    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Steps the environments, and records the episodes that are over now."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        self._returns[:] = added(self._returns[0], self._returns[1], np.asarray(rewards, np.float64))
        self._lengths += self._lasting
        if len(self._due):  # whom this step has reset: what it brought them counts for nobody
            due, self._due = self._due, NOBODY
            self._begin(due, infos)
        ended = np.flatnonzero(np.logical_or(terminations, truncations))
        if len(ended):
            self._lasting[ended] = 0
            if self._recording.score is not None:
                self._infos.update((row, terminal_info(infos, row)) for row in ended.tolist())
            self._end(self._ends.after(terminations, truncations), infos)
        return observations, rewards, terminations, truncations, infos

    def end_episodes(self, envs: ArrayLike) -> Any:
        """Records the episodes of some environments and begins their next; see `PolicyMapVector.end_episodes`."""
        policy_ids = self.env.end_episodes(envs)  # type: ignore[attr-defined]
        chosen = np.asarray(envs)
        over = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.intp)
        played = self._played(over)
        all_of([partial(self._begin, over, {self._recording.info_key: policy_ids}), *played])
        return policy_ids

    def _end(self, over: Envs, infos: Any) -> None:
        """Records episodes that are over, and begins the next ones where the environment has."""
        if self._autoreset is Autoreset.DISABLED and self._declared is not Autoreset.DISABLED:
            return  # the simulator alone knows
        played = self._played(over)
        if self._autoreset is Autoreset.SAME_STEP:
            played = [partial(self._begin, over, infos), *played]
        elif self._autoreset is Autoreset.NEXT_STEP:
            self._due = over
        all_of(played)

    def _begin(self, envs: Envs, infos: Any) -> None:
        """Begins the episodes of some environments with the policies that their infos name."""
        if not isinstance(infos, dict):
            infos = unpacked(infos, getattr(self.env.unwrapped, "idx_starts", None))
        rows = self._rows[envs].reshape(-1)
        self._policies[rows] = policies_in(infos, self._recording.info_key, rows)
        self._returns[:, rows] = 0.0
        self._lengths[rows] = 0
        self._lasting[rows] = 1
        self._ends.begin(envs)
        self._playing[envs] = True

    def _played(self, envs: Envs) -> list[Callable[[], None]]:
        """Returns calls that hand on the episodes of some environments, those left out where that has been done.

        They are made once the next episodes have begun, so that an error of one sink touches no other episode.
        """
        playing = envs[self._playing[envs]]
        self._playing[playing] = False
        calls: list[Callable[[], None]] = []
        for rows in self._rows[playing]:
            values = (self._policies[rows].tolist(), self._returns[0, rows].tolist(), self._lengths[rows].tolist())
            policies, returns, lengths = (dict(zip(self._agents, each, strict=True)) for each in values)
            infos = {agent: self._infos.pop(row, {}) for agent, row in zip(self._agents, rows.tolist(), strict=True)}
            calls.append(partial(self._recording.finish, policies, returns, lengths, infos))
        return calls


def _policy_wrapper(env: Any) -> PolicyMapVector | None:
    """Returns the vector policy wrapper inside, if there is one: it knows the agents and how the rows are reset."""
    while isinstance(env, VectorWrapper):
        if isinstance(env, PolicyMapVector):
            return env
        env = env.env
    return None
