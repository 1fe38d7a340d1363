"""The worlds that the streams are played in."""
