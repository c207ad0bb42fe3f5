"""`tournament`: every entrant against every other."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pz_policymap.arguments import boolean, integer
from pz_policymap.evaluation.game_table import GameTable
from pz_policymap.evaluation.games import Schedule
from pz_policymap.evaluation.results_file import ResultsFile
from pz_policymap.evaluation.tournament_result import TournamentResult, sides_of
from pz_policymap.evaluation.workers import Plan, num_workers, played
from pz_policymap.mappings.groups import GroupOf
from pz_policymap.policies.entrant import Entrant
from pz_policymap.policies.seat_policies import SeatPolicies

Progress = bool | Callable[[int, int], object]

_MOST_GAMES = 10_000_000  # each takes some memory


def tournament(
    make_env: Callable[[], Any],
    entrants: Mapping[str, Any],
    *,
    cycles: int = 1,
    seed: int = 0,
    team_of: GroupOf | None = None,
    self_matches: bool = False,
    games: int | None = None,
    n_jobs: int = 1,
    shard: tuple[int, int] | None = None,
    results: str | os.PathLike[str] | None = None,
    on_error: Literal["raise", "forfeit"] = "raise",
    progress: Progress = False,
) -> TournamentResult:
    """Plays every matchup of some entrants, in every seating.

    A game is a function of the seed, the names of its entrants in seat order and its repetition, provided that policies
    keep nothing from one game to the next. So neither the order of entrants, nor their number, nor `n_jobs` changes
    it, and the seatings of the same entrants are played under the same environment seed.

    In cooperative games set `self_matches=True`: the result then shows mean returns in self-play and in cross-play.

    Args:
        make_env: Makes a PettingZoo AEC or Parallel environment with `possible_agents`, without policy wrapper.
        entrants: Name -> policy. A policy is a callable `(observation, agent, info) -> action`, an object with
            `predict`, an `Entrant`, or "random".
        cycles: How often every matchup is played in every seating, >= 1.
        seed: Seeds the games and their order, >= 0.
        team_of: The team of each agent, as in `record_results`. None: every seat wins or loses by itself.
        self_matches: Whether an entrant may control several seats of a game.
        games: Number of games in place of `cycles`, >= 1; the first games of the random order.
        n_jobs: Number of workers, >= 1, or -1 for all that joblib's backend has. Values other than 1 need the extra
            `jobs`; inside `joblib.parallel_config(backend=...)` a Dask or Ray cluster plays. Threads of a worker, such
            as Dask's, share Python's global `random`: policies must take `rng` there instead.
        shard: `(i, n)` plays the i-th of n parts of the games, i from 0. Give each its own `results` file, and merge
            these by `read_tournament`.
        results: A file to which each game is appended as it finishes, by the names of its entrants. Games that it holds
            are not played again: after an interruption the same call resumes, and a new entrant plays only its own.
        on_error: "raise" ends the tournament at the first error. "forfeit" gives the entrant whose policy failed a
            loss, with returns of 0 for all. An `Entrant` that cannot be loaded always ends the tournament.
        progress: True writes progress to stderr; a function is called with the number of games done and of all games.

    Returns:
        All games among these entrants, those that `results` held before included.

    Raises:
        TypeError: If an argument has the wrong type, or if an entrant is not a policy.
        ValueError: If a number is out of range, if `results` holds another tournament, if it holds games of an
            `Entrant` in another version or without one, or if another process writes it.
        PlayError: If a game fails; names the game, the entrant, the agent and the line. Finished games are kept in
            `results`.
        OSError: If `results` cannot be written; games before it are kept.
        ImportError: If `n_jobs` is not 1 and joblib is not installed.

    Example:
        >>> import pz_policymap as pm
        >>> from pettingzoo.classic import rps_v2
        >>> def paper(observation, agent, info):
        ...     return 1
        >>> def rock(observation, agent, info):
        ...     return 0
        >>> result = pm.tournament(rps_v2.parallel_env, {"paper": paper, "rock": rock}, cycles=5)
        >>> result.payoff.wins.tolist()
        [[0, 10], [0, 0]]
    """
    names, env_name, agents = _checked(make_env, entrants)
    if on_error not in ("raise", "forfeit"):
        raise ValueError(f"on_error must be 'raise' or 'forfeit', got {on_error!r}")
    seed, jobs = integer("seed", seed, 0), integer("n_jobs", n_jobs, -1)
    if jobs == 0:
        raise ValueError("n_jobs must be an integer >= 1, or -1 for all workers, got 0")
    schedule = Schedule(names, agents, seed, boolean("self_matches", self_matches))
    if not schedule.per_cycle:
        raise ValueError(
            f"entrants must be at least one per seat, or self_matches=True, got {len(names)} for {len(agents)} seats"
        )
    count = integer("cycles", cycles, 1) * schedule.per_cycle if games is None else integer("games", games, 1)
    if count > _MOST_GAMES:
        raise ValueError(f"games must be at most {_MOST_GAMES}, got {count}; set games to play fewer")
    numbers = _numbers(count, shard)
    sides = sides_of(team_of, agents)
    write = _reporter(progress)

    table, file = GameTable(agents), None
    if results is not None:
        versions = {name: policy.version for name, policy in entrants.items() if isinstance(policy, Entrant)}
        known = {name: version for name, version in versions.items() if version is not None}
        file = ResultsFile(results, {"environment": env_name, "agents": list(agents), "seed": seed})
        file.check_versions(known)
        table = file.games
    missing = numbers[table.missing(schedule.games(numbers))] if len(table) else numbers
    done = len(numbers) - len(missing)
    write(done, len(numbers))
    if len(missing):
        workers = min(num_workers(jobs), len(missing))
        plan = Plan(make_env, dict(entrants), seed, agents, on_error == "forfeit")
        with ExitStack() as stack:
            if file is not None:
                file.open(known)
                stack.callback(file.close)
            outcomes = stack.enter_context(closing(played(plan, schedule.games(missing), len(missing), workers)))
            for outcome in outcomes:
                table.add(outcome) if file is None else file.append(outcome)
                done += 1
                write(done, len(numbers))
    return TournamentResult(names, table, sides)


def _numbers(count: int, shard: Any) -> NDArray[np.int64]:
    """Returns the numbers of the games to play: all, or every n-th from i."""
    if shard is None:
        return np.arange(count)
    try:
        index, shards = shard
    except (TypeError, ValueError):
        raise TypeError(f"shard must be a pair of integers (i, n), got {shard!r}") from None
    shards = integer("shard[1]", shards, 1)
    return np.arange(integer("shard[0]", index, 0, shards - 1), count, shards)


def _checked(make_env: Any, entrants: Any) -> tuple[tuple[str, ...], Any, tuple[Any, ...]]:
    """Returns the names of the entrants, the name of the environment, and its agents."""
    if not isinstance(entrants, Mapping) or not all(isinstance(name, str) and name for name in entrants):
        raise TypeError(f"entrants must be a dict from non-empty name to policy, got {entrants!r}")
    if len(entrants) < 2:
        raise ValueError(f"entrants must be at least 2, got {list(entrants)}")
    if not callable(make_env):
        raise TypeError(f"make_env must be a callable that makes an environment, got {make_env!r}")
    env = make_env()
    agents = getattr(env, "possible_agents", None)
    if agents is None or not callable(getattr(env, "action_space", None)):
        raise TypeError(f"make_env must return a PettingZoo environment with possible_agents, got {env!r}")
    if not all(isinstance(agent, (str, int)) for agent in agents):
        raise TypeError(f"possible_agents must be strings or integers, got {list(agents)}")
    name = getattr(make_env, "description", None) or (getattr(env, "metadata", None) or {}).get("name")
    SeatPolicies(
        {name: policy for name, policy in entrants.items() if not isinstance(policy, Entrant)}, env.action_space
    )
    agents = tuple(agents)
    env.close()
    return tuple(entrants), name, agents


def _reporter(progress: Progress) -> Callable[[int, int], object]:
    """Returns the progress callback, a function of the numbers of finished and of all games."""
    if callable(progress):
        return progress
    if not boolean("progress", progress):
        return lambda *_: None
    due = [0.0]

    def write(done: int, count: int) -> None:
        if done == count or time.monotonic() >= due[0]:
            due[0] = time.monotonic() + 1.0
            sys.stderr.write(f"\r{done} of {count} games" + "\n" * (done == count))
            sys.stderr.flush()

    return write
