"""Reflectors draw a lesson from a failed trial: one file, one reflector."""
