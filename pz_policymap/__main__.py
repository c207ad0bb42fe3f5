"""`python -m pz_policymap`: the command line."""

from pz_policymap.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
