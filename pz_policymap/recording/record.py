"""`record_results`: wraps an environment so that the result of every episode is recorded."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from gymnasium.vector import VectorEnv
from pettingzoo.utils.env import ActionType, AECEnv, AgentID, ObsType, ParallelEnv

from pz_policymap.mappings.groups import GroupOf
from pz_policymap.recording.aec import RecordResultsAEC
from pz_policymap.recording.batch import BatchRecorder
from pz_policymap.recording.multi_agent_vector import RecordResultsMultiAgentVector
from pz_policymap.recording.parallel import RecordResultsParallel
from pz_policymap.recording.running_episode import Score
from pz_policymap.recording.vector import RecordResultsVector
from pz_policymap.wrappers.find import INNER, SEVERAL
from pz_policymap.wrappers.multi_agent_vector import PolicyMapMultiAgentVector, is_simulator

if TYPE_CHECKING:
    from gymnasium.vector import AutoresetMode  # which Gymnasium 1.0 does not have


@overload
def record_results(
    env: AECEnv[AgentID, ObsType, ActionType],
    *sinks: Any,
    team_of: GroupOf | None = None,
    score: Score | None = None,
    info_key: str | None = None,
) -> RecordResultsAEC[AgentID, ObsType, ActionType]: ...


@overload
def record_results(
    env: ParallelEnv[AgentID, ObsType, ActionType],
    *sinks: Any,
    team_of: GroupOf | None = None,
    score: Score | None = None,
    info_key: str | None = None,
) -> RecordResultsParallel[AgentID, ObsType, ActionType]: ...


@overload
def record_results(
    env: VectorEnv,
    *sinks: Any,
    team_of: GroupOf | None = None,
    score: Score | None = None,
    info_key: str | None = None,
    agents: int | Sequence[Hashable] | None = None,
    autoreset_mode: AutoresetMode | str | None = None,
) -> RecordResultsVector: ...


@overload
def record_results(
    env: PolicyMapMultiAgentVector,
    *sinks: Any,
    team_of: GroupOf | None = None,
    score: Score | None = None,
    info_key: str | None = None,
) -> RecordResultsMultiAgentVector: ...


def record_results(
    env: Any,
    *sinks: Any,
    team_of: GroupOf | None = None,
    score: Score | None = None,
    info_key: str | None = None,
    agents: int | Sequence[Hashable] | None = None,
    autoreset_mode: AutoresetMode | str | None = None,
) -> Any:
    """Wraps an environment so that the result of every episode is recorded.

    The recorder goes anywhere outside the policy wrapper, and reads policies from the tags in the infos. An episode is
    recorded in the step in which its last agent terminates or is truncated. Interrupted episodes are ignored. An agent
    that ends early waits for the others, since results taken at its end would be biased.

    The return of an agent is the sum of its `rewards` as seen by the recorder, after each step of a live agent;
    cumulative rewards (`last()`) are not read. A reward is a number, an array with a single element, or None for 0.
    Its length is the number of steps in which it acted. Keys that are not agents, such as "__all__", are ignored.

    A PettingZoo environment also returns each episode in the last info of one agent, under "finished_episodes". Sinks
    of an environment in another process are copies that stay there; take episodes out of infos instead, with
    `finished_episodes`.

    Args:
        env: A PettingZoo AEC or Parallel environment, a Gymnasium vector environment, or a batched multi-agent
            simulator, tagged by a policy wrapper.
        *sinks: Receive each `Episode`: a `Payoff`, a `PolicyStatistics`, any object with a `record` method, or a
            function. A vector environment needs at least one.
        team_of: The teams, whose seats win and lose together: a dict from agent to team, a function, or "prefix"
            ("red" for "red_0"), as in `Teams`. None: every seat is a team of its own.
        score: Decides the winner in place of the return: `score(returns, infos) -> {agent: number}`. Both arguments
            are dicts by agent; `infos` holds a copy of the last info of each.
        info_key: Key of the tag in each info. None: that of the policy wrapper inside, or "policy_id" if none is found,
            as in a vector environment of other processes.
        agents: For a vector environment: number of rows of each environment, or the names of its agents in seat order.
            None: as in the `PolicyMapVector` inside, or else 1.
        autoreset_mode: For a vector environment that neither declares it nor has a `PolicyMapVector` inside.

    Returns:
        A `RecordResultsAEC`, `RecordResultsParallel`, `RecordResultsVector` or `RecordResultsMultiAgentVector`.

    Raises:
        TypeError: If an argument has the wrong type, or is for vector environments only.
        ValueError: If no sink is given, if a recorder inside has the same sink, or if `agents` does not divide the
            number of rows; at a step, if an agent has no tag, if its tag changes within an episode, or if a reward is
            not a finite number.

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
    _check_distinct(env, sinks)
    settings: dict[str, Any] = {"team_of": team_of, "score": score, "info_key": info_key}
    if isinstance(env, VectorEnv):
        return RecordResultsVector(env, *sinks, **settings, agents=agents, autoreset_mode=autoreset_mode)
    if agents is not None or autoreset_mode is not None:
        raise TypeError(
            f"agents and autoreset_mode are for vector environments, got agents={agents!r} and "
            f"autoreset_mode={autoreset_mode!r} for {env!r}"
        )
    if is_simulator(env):
        return RecordResultsMultiAgentVector(env, *sinks, **settings)
    if isinstance(env, AECEnv):
        return RecordResultsAEC(env, *sinks, **settings)
    if isinstance(env, ParallelEnv):
        return RecordResultsParallel(env, *sinks, **settings)
    raise TypeError(
        f"env must be a PettingZoo AECEnv or ParallelEnv, a Gymnasium VectorEnv or a simulator with num_envs and "
        f"agents, got {env!r} ({type(env).__name__})"
    )


def recorders_in(env: Any) -> Iterator[Any]:
    """Yields the recorders in a stack of wrappers, converters and vectorizers, outermost first."""
    layers = [env]
    for layer in layers:  # which grows
        if isinstance(layer, (RecordResultsAEC, RecordResultsParallel, BatchRecorder)):
            yield layer
        own = getattr(layer, "__dict__", {})  # wrappers forward attributes, and some of them raise before reset
        for name in (*INNER, *SEVERAL):
            inner = own.get(name)
            layers += inner if isinstance(inner, (list, tuple)) else [] if inner is None else [inner]


def _check_distinct(env: Any, sinks: Sequence[Any]) -> None:
    """Raises a ValueError if a recorder inside has one of these sinks, which would count each episode twice."""
    taken = [receiver for recorder in recorders_in(env) for receiver in recorder.sinks]
    for sink in sinks:
        if getattr(sink, "record", sink) in taken:
            raise ValueError(f"sinks must not be shared with a recorder inside, got {sink!r} in both")
