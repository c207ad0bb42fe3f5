"""Snapshots of learners: members of the population, when one joins, and how they are matched."""
