"""Streams of tasks that share a structure: four families, made in process from a seed, with a change in the middle."""
