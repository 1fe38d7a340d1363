"""Benchmarks of a user's own tasks."""
