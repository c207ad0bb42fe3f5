"""`pz-policymap preview`: the assignments that a mapping makes, without an environment."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.assignment import assignments, cadence_of
from pz_policymap.cadence import Cadence
from pz_policymap.cli.errors import UsageError, error_message
from pz_policymap.cli.mappings import mapping_from
from pz_policymap.cli.options import add_cadence, add_command, add_number, add_outputs, at_least
from pz_policymap.cli.pictures import picture_at
from pz_policymap.cli.tables import console, policy_style, show, show_json, show_table
from pz_policymap.mappings.base import PolicyIds, PolicyMapping

_TEXT = """
Shows which policy controls which agent under a mapping, and each policy's share of the seats.

A MAPPING is written in its text form, as in Python: Uniform(8). A number alone is Uniform(NUMBER). An object or a
function of your own is my.module:mapping.

examples:
  pz-policymap preview 'Uniform(8)' --agents 4 --episodes 30
  pz-policymap preview 'Balanced(8, num_envs=64)' --envs 64 --resample-every 1
  pz-policymap preview 'Teams(Uniform(4))' --agents red_0,red_1,blue_0,blue_1
  pz-policymap preview 'Focal(Fixed(0), Weighted([0, 3, 1, 1]))' --plot preview.png
  pz-policymap preview 'RoundRobin(8, self_matches=False)' --agents 2 --resample-every 1 --episodes 56 --json
  pz-policymap preview my.module:mapping --agents player_0,player_1
"""
_MANY = 2000  # draws that the long run is made of
_MOST_DRAWN_SEATS = 200_000  # of the long run, so that thousands of agents take no longer
_MOST_COLUMNS = 64  # agents that the table shows
_MOST_SEATS = 64  # that a picture shows


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(commands, "preview", "show the assignments that a mapping makes", _TEXT)
    parser.add_argument("mapping", metavar="MAPPING", help="such as 8, Teams(Uniform(4)) or my.module:mapping")
    parser.add_argument("--agents", default="4", metavar="AGENTS", help="number of agents, or names: a,b,c (default 4)")
    add_number(parser, "--episodes", 30, 1, "episodes of each environment")
    add_number(parser, "--envs", 1, 1, "environments")
    add_cadence(parser)
    add_number(parser, "--seed", 0, 0, "seed of the assignments")
    parser.add_argument("--rows", type=at_least(0), default=50, metavar="N", help="rows to show at most (default 50)")
    add_outputs(parser, "assignments and shares")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    agents = _agents(options.agents)
    mapping = mapping_from(options.mapping)
    picture = picture_at(options.plot)
    cadence = cadence_of(mapping, options.resample_every, options.warmup_episodes)
    options.resample_every = cadence.resample_every
    drawn = _drawn(mapping, agents, options)
    long_run = _long_run(mapping, agents, options)
    counts = np.bincount(drawn.ravel(), minlength=max(len(long_run), mapping.num_policies or 0))
    ideal = np.pad(long_run, (0, len(counts) - len(long_run))) if len(long_run) else np.full(len(counts), np.nan)
    if options.json:
        show_json(
            {
                "mapping": repr(mapping),
                "agents": agents,
                "seed": options.seed,
                "policy_ids": drawn,  # by episode, environment and agent
                "seats": counts,
                "shares": counts / counts.sum(),
                "long_run_shares": ideal,
            }
        )
    else:
        _show_draws(drawn, agents, options)
        show()
        _show_shares(drawn, counts, ideal)
    if picture:
        from pz_policymap import plots
        from pz_policymap.plots.style import side_by_side

        envs = min(options.envs, max(1, _MOST_SEATS // len(agents)))
        seats = agents if options.envs == 1 else [f"{e} {agent}" for e in range(envs) for agent in agents]
        title = "" if envs == options.envs else f"the first {envs} of {options.envs} environments"
        shown = drawn[:, :envs].reshape(len(drawn), -1)
        tall = min(max(4.0, 0.25 * len(seats)), 20.0)
        figure = side_by_side(
            lambda axes: plots.assignments(
                axes, shown, seats, len(counts), cadence.resample_every, cadence.warmup_episodes
            ).set_title(title),
            lambda axes: plots.shares(axes, counts, ideal if len(long_run) else counts),
            sizes=[(8.0, tall), (5.0, max(3.0, 0.3 * len(counts)))],
        )
        picture.save(figure)
    return 0


def _agents(text: str) -> list[str]:
    """Returns the names of the agents."""
    if text.isdecimal():
        names = [f"agent_{seat}" for seat in range(int(text))]
    else:
        names = [name.strip() for name in text.split(",")]
    if not names or not all(names):
        raise UsageError(f"--agents must be a number from 1, or names a,b,c, got {text!r}")
    if len(set(names)) < len(names):
        raise UsageError(f"--agents must be distinct, got {text!r}")
    return names


def _drawn(mapping: PolicyMapping, agents: Sequence[str], options: argparse.Namespace) -> PolicyIds:
    """Returns the policies of all episodes, shape `(episodes, envs, agents)`; says when the mapping is not pure."""
    cadence = {"resample_every": options.resample_every, "warmup_episodes": options.warmup_episodes}
    episodes = np.arange(options.episodes)[:, None]
    try:
        drawn, again = (
            assignments(mapping, agents, seed=options.seed, env_index=range(options.envs), episode=episodes, **cadence)
            for _ in range(2)
        )
    except (TypeError, ValueError) as error:
        raise UsageError(error_message(error)) from error
    if not np.array_equal(drawn, again):
        print("the mapping is not pure: a second draw with the same numbers differs", file=sys.stderr)
    return drawn


def _long_run(mapping: PolicyMapping, agents: Sequence[str], options: argparse.Namespace) -> NDArray[np.float64]:
    """Returns each policy's share of the seats over many draws; empty if the mapping cannot make that many."""
    draws = max(20, min(_MANY, _MOST_DRAWN_SEATS // len(agents)))
    blocks = np.arange(-(-draws // options.envs))[:, None]
    try:
        drawn = assignments(
            mapping, agents, seed=options.seed, env_index=range(options.envs), episode=blocks, resample_every=1
        )
    except (TypeError, ValueError):  # such as a function that knows only its first blocks
        return np.zeros(0)
    shares: NDArray[np.float64] = np.bincount(drawn.ravel()) / drawn.size
    return shares


def _show_draws(drawn: PolicyIds, agents: Sequence[str], options: argparse.Namespace) -> None:
    cadence = Cadence(options.resample_every, options.warmup_episodes)
    starts = np.flatnonzero(cadence.due(np.arange(len(drawn)))).tolist()
    ends = [*starts[1:], len(drawn)]
    labels = ["episodes"] if options.envs == 1 else ["episodes", "env"]
    hidden, agents = len(agents) - _MOST_COLUMNS, agents[:_MOST_COLUMNS]
    columns: Sequence[str] = agents
    room = console().width - 2 - sum(len(label) + 12 for label in labels)
    if sum(max(len(agent), 2) + 2 for agent in agents) > room:
        columns = [str(seat) for seat in range(len(agents))]
        named = [agent for agent in agents if not agent.startswith("agent_")]
        if named:
            show("seats: " + ", ".join(f"{seat} {agent}" for seat, agent in enumerate(agents)))
    rows: list[list[Any]] = []
    styles: list[list[str]] = []
    for start, end in zip(starts, ends, strict=True):
        span = str(start) if end - start == 1 else f"{start} to {end - 1}"
        for env, policies in enumerate(drawn[start, :, : len(agents)].tolist()):
            if len(rows) < options.rows:
                front = [span] if options.envs == 1 else [span, env]
                rows.append([*front, *policies])
                styles.append([""] * len(front) + [policy_style(policy) for policy in policies])
    show_table("Policies by agent", [*labels, *columns], rows, styles)
    if hidden > 0:
        show(f"... and {hidden} more agents")
    left_out = len(starts) * options.envs - len(rows)
    if left_out:
        show(f"... and {left_out} more rows (--rows)")


def _show_shares(drawn: PolicyIds, counts: NDArray[np.int64], ideal: NDArray[np.float64]) -> None:
    shares = counts / counts.sum()
    rows, styles = [], []
    for policy, (count, share, due) in enumerate(zip(counts.tolist(), shares.tolist(), ideal.tolist(), strict=True)):
        playing = int((drawn == policy).any(axis=2).sum())
        long_run = "-" if math.isnan(due) else f"{due:.1%}"
        rows.append([str(policy), playing, count, f"{share:.1%}", long_run, "#" * round(40 * share / shares.max())])
        styles.append([policy_style(policy), "", "", "", "", policy_style(policy)])
    show_table("Seats by policy", ["policy", "episodes", "seats", "share", "long run", ""], rows, styles)
