"""Changes the core a little, some thousand times, and says which changes no test notices: `nox --session mutants`.

It takes most of an hour on two cores. What survives must be explained in `mutants.txt`, and be less than one in twenty.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXPLAINED = Path(__file__).with_name("mutants.txt")
LIMIT = 0.05
NOTICED = ("killed", "timeout")

Mutant = tuple[str, str]  # where: "draw.Draw.bits"; what it says there


def main() -> int:
    """Runs mutmut as pyproject.toml tells it; returns 0 where few changes survive, each of them explained."""
    reasons = explained()
    subprocess.run([sys.executable, "-m", "mutmut", "run", *sys.argv[1:]], check=True)
    fates = re.findall(r"^ *(pz_policymap\S+): (.+)$", said("results", "--all", "true"), re.MULTILINE)
    survivors = [mutant_of(name) for name, fate in fates if fate not in NOTICED]
    unexplained = [mutant for mutant in survivors if mutant not in reasons]
    for where, change in unexplained:
        print(f"{where}\n    {change}")
    share = len(survivors) / len(fates)
    print(f"{len(survivors)} of {len(fates)} survive ({share:.1%}), {len(unexplained)} unexplained")
    return int(bool(unexplained) or share >= LIMIT)


def said(*arguments: str) -> str:
    """Returns what mutmut prints."""
    return subprocess.run(
        [sys.executable, "-m", "mutmut", *arguments], check=True, capture_output=True, text=True
    ).stdout


def mutant_of(name: str) -> Mutant:
    """Returns where and what mutmut changed under this name, "pz_policymap.randomness.draw.xǁDrawǁbits__mutmut_4"."""
    where = re.sub(r"^pz_policymap\.|\bx_?(?=[^.]*$)|__mutmut_\d+$", "", name).replace("ǁ", ".").replace("..", ".")
    lines = re.findall(r"^[+](?![+][+])(.*)$", said("show", name), re.MULTILINE) or ["a line less"]
    return where, " ".join(line.strip() for line in lines)


def explained() -> dict[Mutant, str]:
    """Returns why each survivor that is listed makes no difference that a test should see."""
    reasons: dict[Mutant, str] = {}
    why = where = ""
    for line in EXPLAINED.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            why = line.removeprefix("#").strip()
        elif line.startswith(" "):
            reasons[where, line.strip()] = why
        elif line:
            where = line
    return reasons


if __name__ == "__main__":
    sys.exit(main())
