"""Environments of HotPotQA."""
