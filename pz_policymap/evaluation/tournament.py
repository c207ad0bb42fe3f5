"""`tournament`: every entrant against every other."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, redirect_stdout
from importlib import import_module
from typing import Any, Literal, NamedTuple

from pz_policymap.arguments import boolean, integer
from pz_policymap.evaluation.episode_loop import PlayError
from pz_policymap.evaluation.game_results import GameResults, ResultsFile
from pz_policymap.evaluation.games import FinishedGame, Game, GamePlayer, games_per_cycle, scheduled
from pz_policymap.evaluation.tournament_result import TournamentResult
from pz_policymap.mappings.groups import GroupOf, group_rule, seats_by_group

Progress = bool | Callable[[int, int], object]

_MOST_GAMES = 10_000_000  # each takes memory
_BATCH_SECONDS = 0.3  # a batch of games that takes less costs more in messages than in games


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
    results: str | os.PathLike[str] | None = None,
    on_error: Literal["raise", "forfeit"] = "raise",
    progress: Progress = False,
) -> TournamentResult:
    """Plays every matchup of some entrants, in every seating.

    A game is a function of the seed, the names of its entrants in seat order and its repetition, provided that policies
    keep nothing from one game to the next. So neither the order of entrants, nor their number, nor `n_jobs` changes
    it, and the seatings of the same entrants are played under the same environment seed.

    Args:
        make_env: Makes a PettingZoo AEC or Parallel environment with `possible_agents`, without policy wrapper.
        entrants: Name -> policy. A policy is a callable `(observation, agent, info) -> action`, an object with
            `predict`, an `Entrant`, or "random".
        cycles: How often every matchup is played in every seating, >= 1.
        seed: Seeds the games and their order, >= 0.
        team_of: The team of each agent, as in `record_results`. None: every seat wins or loses by itself.
        self_matches: Whether an entrant may control several seats of a game.
        games: Number of games in place of `cycles`, >= 1; the first games of the random order.
        n_jobs: Number of processes, >= 1. More than one needs joblib; see `joblib.parallel_config` for clusters.
        results: A file that keeps the games by the names of their entrants. Games that it holds are not played
            again: after an interruption the same call resumes, and a new entrant plays only its own games.
        on_error: "raise" ends the tournament at the first error. "forfeit" gives the entrant whose policy failed a
            loss, with returns of 0 for all.
        progress: True writes progress to stderr; a function is called with the number of games done and of all games.

    Returns:
        All games among these entrants, those that `results` held before included.

    Raises:
        TypeError: If an argument has the wrong type, or if an entrant is not a policy.
        ValueError: If a number is out of range, or if `results` holds something else.
        PlayError: If a game fails; names the game, the entrant, the agent and the line. Finished games are kept.
        ImportError: If `n_jobs` is above 1 and joblib is not installed.

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
    seed, jobs = integer("seed", seed, 0), integer("n_jobs", n_jobs, 1)
    per_cycle = games_per_cycle(len(names), len(agents), boolean("self_matches", self_matches))
    if not per_cycle:
        raise ValueError(
            f"entrants must be at least one per seat, or self_matches=True, got {len(names)} for {len(agents)} seats"
        )
    count = integer("cycles", cycles, 1) * per_cycle if games is None else integer("games", games, 1)
    if count > _MOST_GAMES:
        raise ValueError(f"games must be at most {_MOST_GAMES}, got {count}; set games to play fewer")
    sides: list[Any] = list(range(len(agents)))
    if team_of is not None:
        for team, seats in seats_by_group("team_of", group_rule("team_of", team_of), agents).items():
            for seat in seats:
                sides[seat] = team

    finished = GameResults({"environment": env_name, "agents": list(agents), "seed": seed}, agents)
    file = ResultsFile(results, finished)
    schedule = scheduled(names, agents, seed, count, self_matches)
    missing = [game for game in schedule if game not in finished]
    reasons: dict[str, str] = {}
    done = count - len(missing)
    report = _reporter(progress)
    report(done, count)
    plan = _Plan(make_env, dict(entrants), seed, agents, on_error == "forfeit")
    try:
        with closing(_played(plan, missing, min(jobs, max(1, len(missing))))) as outcomes:
            for outcome in outcomes:
                finished.record(outcome)
                if outcome.forfeit is not None:
                    reasons.setdefault(outcome.forfeit, outcome.reason)
                done += 1
                file.save_if_due()
                report(done, count)
    finally:
        if missing:
            file.save()
    return TournamentResult(names, tuple(finished.episodes(names, sides)), reasons)


def _checked(make_env: Any, entrants: Any) -> tuple[tuple[str, ...], Any, tuple[Any, ...]]:
    """Returns the names of the entrants, what the environment is called, and its agents."""
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
    agents = tuple(agents)
    env.close()
    return tuple(entrants), name, agents


class _Plan(NamedTuple):
    """The arguments of `GamePlayer`."""

    make_env: Callable[[], Any]
    entrants: dict[str, Any]
    seed: int
    agents: tuple[Any, ...]
    forfeits: bool


def _played(plan: _Plan, games: list[Game], jobs: int) -> Generator[FinishedGame, None, None]:
    """Yields games as they finish."""
    if jobs == 1:
        player = GamePlayer(*plan)
        try:
            for game in games:
                yield player.play(game)
        finally:
            player.close()
        return
    try:
        joblib: Any = import_module("joblib")  # an extra without type hints
        cloudpickle: Any = import_module("cloudpickle")
    except ImportError as error:
        raise ImportError("n_jobs above 1 needs joblib: pip install joblib cloudpickle") from error
    payload, token = cloudpickle.dumps(plan), f"{os.getpid()} {uuid.uuid4().hex}"  # pickled once, not once per batch
    pace = [0.0, 0.0]  # seconds and games so far
    calls = (joblib.delayed(_play_batch)(token, payload, batch) for batch in _batches(games, pace, jobs))
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    try:
        with closing(parallel(calls)) as batches:
            for outcomes, failure, seconds in batches:
                pace[:] = pace[0] + seconds, pace[1] + len(outcomes)
                yield from outcomes
                if failure is not None:
                    raise failure
    except BrokenProcessPool as error:
        raise PlayError(f"a worker process died: {' '.join(str(error).split())}") from error


def _batches(games: Sequence[Game], pace: list[float], jobs: int) -> Iterator[Sequence[Game]]:
    """Yields batches of some tenths of a second, by the pace so far; single games at first and in the end."""
    start = 0
    while start < len(games):
        fair = -(-(len(games) - start) // (2 * jobs))
        size = int(_BATCH_SECONDS * pace[1] / pace[0]) if pace[0] else 1
        stop = start + max(1, min(size, fair))
        yield games[start:stop]
        start = stop


_worker = threading.local()  # the environment and the policies of a worker, made once per tournament


def _play_batch(
    token: str, payload: bytes, games: Sequence[Game]
) -> tuple[list[FinishedGame], PlayError | None, float]:
    """Plays games in a worker; returns them, the error that ended the batch, and how long it took."""
    if getattr(_worker, "token", None) != token:
        if not token.startswith(f"{os.getpid()} ") and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asked, which ends this one
        with redirect_stdout(sys.stderr):
            _worker.player = GamePlayer(*pickle.loads(payload))  # noqa: S301  # from the process that started this one
        _worker.token = token
    outcomes: list[FinishedGame] = []
    begun = time.perf_counter()
    try:
        with redirect_stdout(sys.stderr):  # stdout belongs to the process that asked
            for game in games:
                outcomes.append(_worker.player.play(game))  # noqa: PERF401  # an error keeps those before it
    except PlayError as error:
        return outcomes, error, time.perf_counter() - begun
    return outcomes, None, time.perf_counter() - begun


def _reporter(progress: Progress) -> Callable[[int, int], object]:
    """Returns what is called with the number of games done and of all games."""
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
