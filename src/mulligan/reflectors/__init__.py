"""Who draws the lesson from a failed trial: one file, one reflector."""
