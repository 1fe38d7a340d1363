"""What of the past the next trial is shown: one file, one strategy."""
