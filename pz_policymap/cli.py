"""The command line: plays a real environment and shows which policy played which agent."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence

from pz_policymap.arguments import integer

INSTALL = "pip install 'pz-policymap[demo]'"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demonstration and returns the exit code: 0, or 1 where an extra is missing.

    Args:
        arguments: The words of the command line; None: the process's own.
    """
    parser = argparse.ArgumentParser(
        prog="python -m pz_policymap",
        description="Plays mpe2's simple_tag with random actions and shows which policy plays which agent.",
    )
    for name, default, minimum, text in (
        ("--policies", 4, 1, "size of the population"),
        ("--episodes", 25, 1, "episodes to play"),
        ("--resample-every", 10, 1, "episodes a draw is held for"),
        ("--seed", 42, 0, "seed of environment, actions and assignments"),
    ):
        parser.add_argument(
            name, type=_at_least(minimum), default=default, metavar="N", help=f"{text} (default {default})"
        )
    options = parser.parse_args(arguments)
    try:
        demonstrate(options.policies, options.episodes, options.resample_every, options.seed)
    except ImportError as error:
        print(f"{error}. The demonstration needs an extra: {INSTALL}", file=sys.stderr)
        return 1
    return 0


def _at_least(minimum: int) -> Callable[[str], int]:
    """Returns what turns a word of the command line into an int, or refuses it."""

    def number(word: str) -> int:
        try:
            return integer("the number", int(word), minimum)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return number


def demonstrate(policies: int, episodes: int, resample_every: int, seed: int) -> None:
    """Plays the episodes and prints two tables: who played whom, and what each policy played.

    Args:
        policies: The size of the population, from 1.
        episodes: How many episodes to play, from 1.
        resample_every: Episodes a draw is held for, from 1.
        seed: Seeds environment, actions and assignments.

    Raises:
        ImportError: If rich or mpe2 is not installed.
    """
    from mpe2 import simple_tag_v3
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    import pz_policymap as pm

    env = pm.wrap(simple_tag_v3.parallel_env(), policies, resample_every=resample_every)
    agents = env.possible_agents
    for number, agent in enumerate(agents):
        env.action_space(agent).seed(seed + number)

    console = Console()
    draws: list[tuple[int, dict[str, int]]] = []
    seats_played: Counter[int] = Counter()
    episodes_played: Counter[int] = Counter()
    steps_played: Counter[int] = Counter()
    for episode in track(range(episodes), "playing", console=console, transient=True):
        _, infos = env.reset(seed=seed if episode == 0 else None)
        matchup = {agent: infos[agent]["policy_id"] for agent in agents}
        if env.assigner.draw_episode[0] == episode:
            draws.append((episode, matchup))
        seats_played.update(matchup.values())
        episodes_played.update(set(matchup.values()))
        while env.agents:
            steps_played.update(info["policy_id"] for info in infos.values())
            actions = {agent: env.action_space(agent).sample() for agent in env.agents}
            _, _, _, _, infos = env.step(actions)
    env.close()

    table = Table("episodes", "drawn at", *agents, title="Which policy played which agent")
    ends = [start for start, _ in draws[1:]] + [episodes]
    for (start, matchup), end in zip(draws, ends, strict=True):
        span = str(start) if end - start == 1 else f"{start} to {end - 1}"
        table.add_row(span, f"reset {start}", *(str(matchup[agent]) for agent in agents))
    console.print(table)

    table = Table("policy", "episodes", "seats", "steps", title="What each policy played")
    for policy in range(policies):
        counts = (episodes_played[policy], seats_played[policy], steps_played[policy])
        table.add_row(str(policy), *map(str, counts))
    console.print(table)
