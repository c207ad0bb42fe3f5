"""Adapters for training frameworks, one module per framework; each imports its framework."""
