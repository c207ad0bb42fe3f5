"""`play`: episodes of a wrapped environment, with the policies that its mapping assigns."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from pettingzoo.utils.env import AECEnv, ParallelEnv

from pz_policymap.arguments import integer
from pz_policymap.evaluation.episode_loop import EpisodeLoop, PlayError
from pz_policymap.learner.global_generators import IsolatedRandomness
from pz_policymap.mappings.groups import GroupOf
from pz_policymap.policies.entrant import loaded
from pz_policymap.policies.seat_policies import Policies, SeatPolicies
from pz_policymap.recording.record import record_results
from pz_policymap.results.episode import Episode
from pz_policymap.wrappers.find import find_assigner


def play(
    env: AECEnv[Any, Any, Any] | ParallelEnv[Any, Any, Any],
    policies: Policies,
    episodes: int,
    *,
    seed: int | None = None,
    team_of: GroupOf | None = None,
    info_key: str | None = None,
) -> Iterator[Episode]:
    """Plays a wrapped environment and yields an `Episode` whenever one has finished.

    Args:
        env: A PettingZoo environment wrapped by `wrap`, with any mapping.
        policies: The policies by policy id, a dict or a sequence. Each is a callable
            `(observation, agent, info) -> action`, an object with `predict`, an `Entrant`, or "random".
        episodes: Number of episodes, >= 1.
        seed: An integer >= 0, passed to the first `reset`; also seeds the policies and, while they act, the global
            generators of Python, NumPy and torch. None: nothing is seeded.
        team_of: As in `record_results`.
        info_key: As in `record_results`.

    Yields:
        One episode each. Interrupted episodes are ignored, so the loop may end at any time.

    Raises:
        TypeError: If a policy is not one, or if `episodes` or `seed` is not an integer.
        ValueError: If `env` has no policy wrapper inside, or if `episodes` or `seed` is out of range.
        PlayError: If the environment or a policy raises an error; names the policy, the agent and the line.

    Example:
        >>> import pz_policymap as pm
        >>> from pettingzoo.classic import rps_v2
        >>> def paper(observation, agent, info):
        ...     return 1
        >>> env = pm.wrap(rps_v2.parallel_env(), pm.Fixed({"player_0": 0, "player_1": 1}))
        >>> payoff = pm.Payoff(num_policies=2)
        >>> for episode in pm.play(env, [paper, "random"], episodes=10, seed=0):
        ...     payoff.record(episode)
        >>> int(payoff.games[0, 1])
        10
    """
    count = integer("episodes", episodes, 1)
    first_seed = None if seed is None else integer("seed", seed, 0)
    find_assigner(env)
    by_id = policies if isinstance(policies, Mapping) else dict(enumerate(policies))
    seats = SeatPolicies({key: loaded(policy) for key, policy in by_id.items()}, env.action_space)
    finished: list[Episode] = []
    recorder = record_results(env, finished.append, team_of=team_of, info_key=info_key)
    loop = EpisodeLoop(recorder, seats, str, info_key)
    return _episodes(loop, finished, count, first_seed)


def _episodes(loop: EpisodeLoop, finished: list[Episode], count: int, seed: int | None) -> Iterator[Episode]:
    entropy = np.random.SeedSequence(seed).entropy
    for number in range(count):
        policy_seed = (int(entropy), number)  # type: ignore[arg-type]
        generators: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if seed is not None:
            words = np.random.SeedSequence(policy_seed).generate_state(1)
            generators = IsolatedRandomness(int(words[0])).in_place()
        try:
            with generators:
                loop.play(seed if number == 0 else None, policy_seed, {})
            if not finished:
                raise PlayError("it is over, but some agents have neither terminated nor been truncated")
        except PlayError as error:
            raise error.within(f"episode {number}") from error.__cause__
        yield finished.pop()
