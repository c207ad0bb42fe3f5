"""Wrappers that tag the infos of an environment, one file per API."""
