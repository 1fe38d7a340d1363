"""Formats of transcripts that `mulligan learn` reads: one file, one format."""
