"""`pz-policymap preview`: who would play whom, without an environment."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pz_policymap.assigner import PolicyAssigner
from pz_policymap.cadence import Cadence
from pz_policymap.cli.errors import UsageError, told
from pz_policymap.cli.mapping_text import mapping_from
from pz_policymap.cli.options import add_cadence, add_command, add_number, add_outputs, at_least
from pz_policymap.cli.pictures import picture_at
from pz_policymap.cli.tables import console, policy_style, show, show_json, show_table
from pz_policymap.mappings.base import PolicyMapping

_TEXT = """
Shows which policy plays which agent under a mapping, and each policy's share of the seats.

A MAPPING is written as name:arguments, with the arguments that its class has in Python; mappings in mappings
stand in brackets, or behind a colon at the end. Or it is an object or a function of your own: my.module:mapping.
A number alone is uniform:NUMBER. What spans environments takes their number from --envs.

examples:
  pz-policymap preview uniform:8 --agents 4 --episodes 30
  pz-policymap preview balanced:8 --envs 64 --resample-every 1
  pz-policymap preview teams:uniform:4 --agents red_0,red_1,blue_0,blue_1
  pz-policymap preview 'focal:fixed(0),weighted(0,3,1,1)' --plot preview.png
  pz-policymap preview roundrobin:8,self_matches=false --agents 2 --resample-every 1 --episodes 56 --json
  pz-policymap preview my.module:mapping --agents player_0,player_1
"""
_MANY = 2000  # draws that the long run is made of
_MOST_SEATS = 64  # that a picture shows


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = add_command(commands, "preview", "show who plays whom under a mapping", _TEXT)
    parser.add_argument("mapping", metavar="MAPPING", help="such as uniform:8, teams:uniform:4 or my.module:mapping")
    parser.add_argument("--agents", default="4", metavar="AGENTS", help="how many, or their names: a,b,c (default 4)")
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
    mapping = mapping_from(options.mapping, options.envs)
    picture = picture_at(options.plot)
    drawn = _drawn(mapping, agents, options)
    long_run = _long_run(mapping, agents, options)
    counts = np.bincount(drawn.ravel(), minlength=max(len(long_run), mapping.num_policies or 0))
    ideal = np.pad(long_run, (0, len(counts) - len(long_run))) if len(long_run) else np.full(len(counts), np.nan)
    if options.json:
        show_json(
            {
                "mapping": mapping.fingerprint,
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

        envs = min(options.envs, max(1, _MOST_SEATS // len(agents)))
        seats = agents if options.envs == 1 else [f"{e} {agent}" for e in range(envs) for agent in agents]
        title = "" if envs == options.envs else f"the first {envs} of {options.envs} environments"
        shown = drawn[:, :envs].reshape(len(drawn), -1)
        cadence = options.resample_every, options.warmup_episodes
        tall = min(max(4.0, 0.25 * len(seats)), 20.0)
        picture.draw(
            lambda axes: plots.assignments(axes, shown, seats, len(counts), *cadence).set_title(title),
            lambda axes: plots.shares(axes, counts, ideal if len(long_run) else counts),
            sizes=[(8.0, tall), (5.0, max(3.0, 0.3 * len(counts)))],
        )
    return 0


def _agents(text: str) -> list[str]:
    """Returns the names of the agents."""
    if text.isdecimal():
        names = [f"agent_{seat}" for seat in range(int(text))]
    else:
        names = [name.strip() for name in text.split(",")]
    if not names or not all(names):
        raise UsageError(f"--agents must be a number from 1, or names a,b,c, got {text!r}")
    return names


def _drawn(mapping: PolicyMapping, agents: Sequence[str], options: argparse.Namespace) -> NDArray[np.int32]:
    """Returns the policies of all episodes, shape `(episodes, envs, agents)`."""
    try:
        assigner = PolicyAssigner(
            mapping,
            agents,
            options.envs,
            resample_every=options.resample_every,
            warmup_episodes=options.warmup_episodes,
            seed=options.seed,
            env_index=0,
        )
        return np.array([assigner.begin_episodes() for _ in range(options.episodes)])
    except (TypeError, ValueError) as error:
        raise UsageError(told(error)) from error


def _long_run(mapping: PolicyMapping, agents: Sequence[str], options: argparse.Namespace) -> NDArray[np.float64]:
    """Returns each policy's share of the seats over many draws; nothing where the mapping cannot make so many."""
    blocks = -(-_MANY // options.envs)
    assigner = PolicyAssigner(mapping, agents, options.envs, resample_every=1, seed=options.seed, env_index=0)
    counts = np.zeros(0, np.int64)
    for _ in range(blocks):
        try:
            policies = assigner.begin_episodes()
        except (TypeError, ValueError):  # a function, say, that knows only its first blocks
            return np.zeros(0)
        more = np.bincount(policies.ravel(), minlength=len(counts))
        more[: len(counts)] += counts
        counts = more
    shares: NDArray[np.float64] = counts / counts.sum()
    return shares


def _show_draws(drawn: NDArray[np.int32], agents: Sequence[str], options: argparse.Namespace) -> None:
    cadence = Cadence(options.resample_every, options.warmup_episodes)
    starts = np.flatnonzero(cadence.due(np.arange(len(drawn)))).tolist()
    ends = [*starts[1:], len(drawn)]
    labels = ["episodes"] if options.envs == 1 else ["episodes", "env"]
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
        for env, policies in enumerate(drawn[start].tolist()):
            if len(rows) < options.rows:
                front = [span] if options.envs == 1 else [span, env]
                rows.append([*front, *policies])
                styles.append([""] * len(front) + [policy_style(policy) for policy in policies])
    show_table("Which policy plays which agent", [*labels, *columns], rows, styles)
    left_out = len(starts) * options.envs - len(rows)
    if left_out:
        show(f"... and {left_out} more rows (--rows)")


def _show_shares(drawn: NDArray[np.int32], counts: NDArray[np.int64], ideal: NDArray[np.float64]) -> None:
    shares = counts / counts.sum()
    rows, styles = [], []
    for policy, (count, share, due) in enumerate(zip(counts.tolist(), shares.tolist(), ideal.tolist(), strict=True)):
        playing = int((drawn == policy).any(axis=2).sum())
        long_run = "-" if math.isnan(due) else f"{due:.1%}"
        rows.append([str(policy), playing, count, f"{share:.1%}", long_run, "#" * round(40 * share / shares.max())])
        styles.append([policy_style(policy), "", "", "", "", policy_style(policy)])
    show_table("What each policy plays", ["policy", "episodes", "seats", "share", "long run", ""], rows, styles)
