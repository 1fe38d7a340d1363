"""Runs a benchmark: its data, its plan, its cases over the loop, replays of published logs."""
