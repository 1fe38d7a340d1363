"""From episodes and transcripts to lessons: facts by rules, judging, extraction, and the checks before keeping."""
