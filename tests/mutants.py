"""Mutation testing of the core: `nox --session mutants`. Fails if 5% or more of the mutants survive.

Takes about an hour on two cores. Prints each surviving mutant.
"""

from __future__ import annotations

import re
import subprocess
import sys

LIMIT = 0.05
NOTICED = ("killed", "timeout")


def main() -> int:
    """Runs mutmut as configured in pyproject.toml; returns 0 if few enough mutants survive."""
    subprocess.run([sys.executable, "-m", "mutmut", "run", *sys.argv[1:]], check=True)
    fates = re.findall(r"^ *(pz_policymap\S+): (.+)$", output("results", "--all", "true"), re.MULTILINE)
    survivors = [name for name, fate in fates if fate not in NOTICED]
    for name in survivors:
        print(output("show", name))
    share = len(survivors) / len(fates)
    print(f"{len(survivors)} of {len(fates)} mutants survive ({share:.1%}); the limit is {LIMIT:.0%}")
    return int(share >= LIMIT)


def output(*arguments: str) -> str:
    """Returns the output of a mutmut command."""
    command = [sys.executable, "-m", "mutmut", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
