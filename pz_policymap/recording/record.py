"""`record_results`: sums rewards and records what every episode ended with."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, overload

from gymnasium.vector import VectorEnv
from pettingzoo.utils.env import ActionType, AECEnv, AgentID, ObsType, ParallelEnv

from pz_policymap.mappings.groups import GroupOf
from pz_policymap.recording.pettingzoo import RecordResultsAEC, RecordResultsParallel
from pz_policymap.recording.running_episode import Score
from pz_policymap.recording.vector import RecordResultsVector

if TYPE_CHECKING:
    from gymnasium.vector import AutoresetMode  # which Gymnasium 1.0 does not have


@overload
def record_results(
    env: AECEnv[AgentID, ObsType, ActionType],
    *sinks: Any,
    team_of: GroupOf | None = None,
    score: Score | None = None,
    info_key: str = "policy_id",
) -> RecordResultsAEC[AgentID, ObsType, ActionType]: ...


@overload
def record_results(
    env: ParallelEnv[AgentID, ObsType, ActionType],
    *sinks: Any,
    team_of: GroupOf | None = None,
    score: Score | None = None,
    info_key: str = "policy_id",
) -> RecordResultsParallel[AgentID, ObsType, ActionType]: ...


@overload
def record_results(
    env: VectorEnv,
    *sinks: Any,
    team_of: GroupOf | None = None,
    score: Score | None = None,
    info_key: str = "policy_id",
    agents: int | Sequence[Hashable] | None = None,
    autoreset_mode: AutoresetMode | str | None = None,
) -> RecordResultsVector: ...


def record_results(
    env: Any,
    *sinks: Any,
    team_of: GroupOf | None = None,
    score: Score | None = None,
    info_key: str = "policy_id",
    agents: int | Sequence[Hashable] | None = None,
    autoreset_mode: AutoresetMode | str | None = None,
) -> Any:
    """Wraps an environment so that what every episode ended with is recorded.

    It goes anywhere outside the policy wrapper, inside or outside others, and counts the rewards that are seen there.
    All it reads of policies is the tag in the infos. An episode is recorded when all its agents have ended,
    truncation being an end, in the very step, before dead agents are played out; one that `reset` cuts is not. An
    agent that dies early waits for the others: results taken at its death would be biased.

    A copy of the environment, such as a clone in another process, records into a copy of its sinks: let it collect
    episodes and send them.

    Args:
        env: A PettingZoo AEC or Parallel environment or a Gymnasium vector environment, tagged by a policy wrapper.
        *sinks: Who gets each `Episode`: a `Payoff`, a `PolicyStatistics`, anything with a `record` method, or a
            function, such as the `append` of a list that a worker sends to the ledger.
        team_of: Which team an agent is in, where seats win and lose together: a dict from agent to team, a function,
            or "prefix" ("red" for "red_0"), as in `Teams`. None: every seat for itself.
        score: What decides who won where it is not the return: `score(returns, infos) -> {agent: number}`, all dicts
            by agent, the infos being the last of each.
        info_key: The key of the tag.
        agents: Of a vector environment: how many rows one environment has, or the names of its agents in seat order.
            None: what the `PolicyMapVector` inside was told, or else one.
        autoreset_mode: Of a vector environment without a `PolicyMapVector` inside, where it does not declare it.

    Returns:
        A `RecordResultsAEC`, a `RecordResultsParallel` or a `RecordResultsVector`.

    Raises:
        TypeError: If an argument is of another kind, `env` included, or is for vector environments alone.
        ValueError: If there is no sink, or if the rows are no multiple of the agents; at a step, if an agent has no
            tag, if its tag changes within an episode, or if its rewards are not finite.

    Example:
        >>> import pz_policymap as pm
        >>> from pettingzoo.classic import rps_v2
        >>> payoff = pm.Payoff(num_policies=3)
        >>> env = pm.record_results(pm.wrap(rps_v2.parallel_env(), pm.Fixed({"player_0": 0, "player_1": 2})), payoff)
        >>> observations, infos = env.reset(seed=0)
        >>> while env.agents:
        ...     outcome = env.step({"player_0": 1, "player_1": 0})  # paper against rock
        >>> payoff.wins[0].tolist()
        [0, 0, 1]
    """
    settings: dict[str, Any] = {"team_of": team_of, "score": score, "info_key": info_key}
    if isinstance(env, VectorEnv):
        return RecordResultsVector(env, *sinks, **settings, agents=agents, autoreset_mode=autoreset_mode)
    if agents is not None or autoreset_mode is not None:
        raise TypeError(
            f"agents and autoreset_mode are for vector environments, got agents={agents!r} and "
            f"autoreset_mode={autoreset_mode!r} for {env!r}"
        )
    if isinstance(env, AECEnv):
        return RecordResultsAEC(env, *sinks, **settings)
    if isinstance(env, ParallelEnv):
        return RecordResultsParallel(env, *sinks, **settings)
    raise TypeError(
        f"env must be a PettingZoo AECEnv or ParallelEnv or a Gymnasium VectorEnv, got {env!r} ({type(env).__name__})"
    )
