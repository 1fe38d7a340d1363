"""Foresights: what is asked before a critical action is performed."""
