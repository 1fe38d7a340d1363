"""From episodes and transcripts to lessons: facts by rule, judging, extraction, and the checks before keeping."""
