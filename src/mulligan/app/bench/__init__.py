"""Benchmarks: data found, cases run, results kept."""
