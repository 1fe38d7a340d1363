"""Benchmarks: the harness that runs them, the report, and a folder for each family with its data and environments."""
