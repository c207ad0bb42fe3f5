"""Snapshots of learners: membership, triggers, matchmaking and release."""
