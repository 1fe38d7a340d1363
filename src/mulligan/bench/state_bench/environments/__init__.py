"""Environments of STATE-Bench."""
