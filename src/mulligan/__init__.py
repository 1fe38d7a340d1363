"""Mulligan: second tries for language agents that have learned from the first."""
