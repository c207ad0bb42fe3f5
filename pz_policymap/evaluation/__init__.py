"""Plays episodes and tournaments: the engine behind the command line."""
