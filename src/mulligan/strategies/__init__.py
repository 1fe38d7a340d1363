"""Strategies choose what the next trial sees of the earlier ones: one file, one strategy."""
