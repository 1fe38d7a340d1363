"""Which lessons nearly say the same: one file, one strategy."""
