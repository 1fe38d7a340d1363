"""Actors make the attempts: one file, one actor."""
