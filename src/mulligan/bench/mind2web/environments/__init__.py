"""The environments of Mind2Web."""
