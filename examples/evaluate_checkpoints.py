"""Evaluates a folder of checkpoints in connect four: standings, win rates of all pairs, and a picture.

Each checkpoint here is a text file with the order in which a scripted player prefers the columns. In place of `load`,
take the function that loads yours, such as `PPO.load` of Stable-Baselines3.

    python examples/evaluate_checkpoints.py [picture.png]
"""

import sys
import tempfile
from pathlib import Path

from pettingzoo.classic import connect_four_v3

import pz_policymap as pm


def load(path):
    """Returns the policy of a checkpoint: it drops its piece into the first column that is not full."""
    columns = [int(column) for column in Path(path).read_text(encoding="utf-8")]

    def policy(observation, agent, info):
        return next(column for column in columns if observation["action_mask"][column])

    return policy


def main(picture: str) -> None:
    """Writes four checkpoints and evaluates them, beside a random policy."""
    folder = Path(tempfile.mkdtemp())
    for name, columns in {"left": "0123456", "right": "6543210", "centre": "3241506", "sides": "0615243"}.items():
        (folder / f"{name}.txt").write_text(columns, encoding="utf-8")

    entrants = pm.Entrant.from_folder(folder, load, "*.txt") | {"random": "random"}
    result = pm.tournament(connect_four_v3.env, entrants, cycles=10, results=folder / "games.jsonl")
    print(result)
    print()
    print(result.pairs())
    result.plot().savefig(picture)

    # A new checkpoint plays only its own games: 80 more. The others are read from the file.
    (folder / "spread.txt").write_text("0246135", encoding="utf-8")
    entrants = pm.Entrant.from_folder(folder, load, "*.txt") | {"random": "random"}
    result = pm.tournament(connect_four_v3.env, entrants, cycles=10, results=folder / "games.jsonl")
    print()
    print("best:", result.names[result.order[0]])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(Path(tempfile.mkdtemp()) / "tournament.png"))
