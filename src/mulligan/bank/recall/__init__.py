"""Finding lessons for a task: index, ranking, thresholds, and the text that a prompt gets."""
