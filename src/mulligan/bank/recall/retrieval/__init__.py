"""How lessons are found for a task: one file, one strategy."""
