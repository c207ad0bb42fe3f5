"""Checks whether an environment works with this package."""
