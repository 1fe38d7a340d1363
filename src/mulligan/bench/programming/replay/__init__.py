"""Replays of published logs: the log is the model, and the result is compared with it."""
