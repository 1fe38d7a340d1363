"""Tools that a skill may unlock: one file, one tool."""
