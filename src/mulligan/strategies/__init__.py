"""Strategies choose what the next trial is shown of the earlier ones: one file, one strategy."""
