"""Worlds to act in: one file, one environment."""
