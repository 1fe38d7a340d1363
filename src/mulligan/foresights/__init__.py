"""Foresights check a critical action before it is performed."""
