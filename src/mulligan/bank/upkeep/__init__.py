"""Background work on stored lessons: vectors, links between near-duplicates, merges."""
