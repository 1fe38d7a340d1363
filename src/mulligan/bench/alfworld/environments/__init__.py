"""Environments of ALFWorld."""
