"""`RecordResultsVector`: records the results of the episodes of a vector environment."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from pz_policymap.batching.nested_arrays import copied, is_tensor, on_host
from pz_policymap.mappings.groups import GroupOf
from pz_policymap.recording.running_episode import Recording, Score, all_of
from pz_policymap.results.payoff import Payoff
from pz_policymap.results.sums import added
from pz_policymap.wrappers.vector import PolicyMapVector
from pz_policymap.wrappers.vector_agents import agents_of, known_agents
from pz_policymap.wrappers.vector_episodes import MASK, Envs, VectorEpisodes, selected_envs
from pz_policymap.wrappers.vector_infos import check_rows, policies_in, terminal_info, unpacked

if TYPE_CHECKING:
    from gymnasium.vector import AutoresetMode  # which Gymnasium 1.0 does not have


class RecordResultsVector(VectorWrapper):
    """Records the result of every episode of a vector environment; see `record_results`.

    If an environment has several rows, its episode ends when every row has ended at least once: the rewards of all its
    rows count until then, and the length of a row is its number of steps until it first ended. Other attributes, such
    as `policy_ids`, are forwarded to the environment.

    Args:
        env: A vector environment, tagged by policy wrappers inside or outside its vectorizer.
        *sinks: As in `record_results`, like all that follow.
        team_of: As in `record_results`.
        score: As in `record_results`.
        info_key: As in `record_results`.
        agents: As in `record_results`.
        autoreset_mode: As in `record_results`.
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
        if not sinks:
            raise ValueError("sinks must hold at least one sink, such as a Payoff, got none")
        self._recording = Recording(sinks, team_of, score, info_key)
        self._tagger = _tagger_in(env)
        if self._tagger is not None:
            if agents is None and len(self._tagger.agents) > 1:
                agents = self._tagger.agents
            autoreset_mode = self._tagger.autoreset_mode  # type: ignore[assignment]  # our own enum
        told = agents is not None or known_agents(env) is not None
        self._agents = tuple(agents_of(env, agents))
        if (
            len(self._agents) == 1
            and not told
            and any(isinstance(getattr(sink, "__self__", sink), Payoff) for sink in sinks)
        ):
            raise ValueError(
                "agents must be given for a Payoff, which compares the seats of one environment: the number of rows "
                "per environment, or the names of its agents, got None"
            )
        self._episodes = VectorEpisodes.of(env, len(self._agents), autoreset_mode)
        self._rows = np.arange(env.num_envs).reshape(-1, len(self._agents))  # of each environment
        self._open = np.zeros(len(self._rows), np.bool_)  # environments with an episode that is not recorded yet
        self._policies = np.zeros(env.num_envs, np.int64)
        self._returns: Any = np.zeros((2, env.num_envs))  # rounded sums and rounding errors; a tensor if rewards are
        self._lengths = np.zeros(env.num_envs, np.int64)
        self._infos: dict[int, Any] = {}  # the terminal infos of each row, where a score needs them

    def __repr__(self) -> str:
        return f"<{type(self).__name__}<{self.env!r}>>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "env":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.env, name)

    @property
    def sinks(self) -> tuple[Any, ...]:
        """The functions that receive each episode."""
        return self._recording.sinks

    @override
    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Any]:
        """Resets environments; interrupted episodes are not recorded."""
        mask = (options or {}).get(MASK)  # read before the environment removes it
        envs = np.arange(len(self._rows)) if mask is None else self._episodes.masked(mask)
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]  # lists are allowed
        # Where rows may respawn, only the reset confirms that an episode is over.
        finished = self._finished(envs[self._episodes.over()[envs]])
        self._open[envs] = False
        infos = self._checked(infos, observations)
        if self._tagger is not None:
            self._episodes.autoreset = self._tagger.autoreset_mode
        self._episodes.settle_mode(self.env, infos)
        self._episodes.begin(envs)
        all_of([partial(self._begin, envs, infos), *finished])
        return observations, infos

    @override
    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Steps the environments, and records the episodes that are over."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        read = self._checked(infos, terminations)
        self._add(rewards)
        self._lengths += ~self._episodes.ended
        change = self._episodes.after_step(terminations, truncations)
        if self._recording.score is not None:
            self._infos.update((row, copied(terminal_info(read, row))) for row in change.rows.tolist())
        calls: list[Callable[[], object]] = []
        if len(change.reset):  # this step's rewards count for no episode
            calls.append(partial(self._begin, change.reset, read))
        if len(change.over) and not self._episodes.by_hand:
            calls.append(partial(self._end, change.over, change.restarted, read))
        all_of(calls)
        return observations, rewards, terminations, truncations, infos

    def end_episodes(self, envs: ArrayLike) -> Any:
        """Records the episodes of some environments and begins their next; see `PolicyMapVector.end_episodes`."""
        policy_ids = self.env.end_episodes(envs)  # type: ignore[attr-defined]
        over = selected_envs(envs, len(self._rows))
        finished = self._finished(over)
        self._episodes.begin(over)
        all_of([partial(self._begin, over, {self._recording.info_key: policy_ids}), *finished])
        return policy_ids

    def _end(self, over: Envs, restarted: Envs, infos: Any) -> None:
        """Records episodes that are over, once their environments have begun the next ones."""
        finished = self._finished(over)
        all_of([partial(self._begin, restarted, infos), *finished] if len(restarted) else finished)

    def _checked(self, infos: Any, values: Any) -> Any:
        """Returns the infos as a dict of arrays or one dict per row, or raises if rows are missing."""
        infos = unpacked(infos, getattr(self.env.unwrapped, "idx_starts", None))
        check_rows(self.num_envs, values, infos)
        return infos

    def _add(self, rewards: Any) -> None:
        """Adds one reward per row; tensors are summed where they are."""
        if is_tensor(rewards):
            if not is_tensor(self._returns):
                self._returns = rewards.new_tensor(self._returns, dtype=rewards.double().dtype)
            values = rewards.to(self._returns)
        else:
            values = np.asarray(rewards, np.float64)
        if tuple(values.shape) == (self.num_envs, 1):
            values = values.reshape(self.num_envs)
        if tuple(values.shape) != (self.num_envs,):
            raise ValueError(
                f"rewards must have shape ({self.num_envs},), got {tuple(values.shape)}; combine vectors into numbers "
                f"by a wrapper inside, for example by a weighted sum"
            )
        self._returns[0], self._returns[1] = added(self._returns[0], self._returns[1], values)

    def _begin(self, envs: Envs, infos: Any) -> None:
        """Begins the episodes of some environments, with the policies that their infos name."""
        rows = self._rows[envs].reshape(-1)
        self._policies[rows] = policies_in(infos, self._recording.info_key, rows)
        self._returns[:, rows] = 0.0
        self._lengths[rows] = 0
        self._open[envs] = True

    def _finished(self, envs: Envs) -> list[Callable[[], object]]:
        """Returns calls that record the episodes of some environments, except those already recorded.

        They are called after the next episodes have begun, so that an error of one sink affects no other episode.
        """
        finished = envs[self._open[envs]]
        self._open[finished] = False
        groups = self._rows[finished]
        returns_of: NDArray[np.float64] = on_host(self._returns[0, groups])
        calls: list[Callable[[], object]] = []
        for rows, earned in zip(groups, returns_of.tolist(), strict=True):
            values = (self._policies[rows].tolist(), earned, self._lengths[rows].tolist())
            policies, returns, lengths = (dict(zip(self._agents, each, strict=True)) for each in values)
            infos = {agent: self._infos.pop(row, {}) for agent, row in zip(self._agents, rows.tolist(), strict=True)}
            calls.append(partial(self._recording.finish, policies, returns, lengths, infos))
        return calls


def _tagger_in(env: Any) -> PolicyMapVector | None:
    """Returns the outermost `PolicyMapVector` in a stack of vector wrappers, if there is one."""
    while isinstance(env, VectorWrapper):
        if isinstance(env, PolicyMapVector):
            return env
        env = env.env
    return None
