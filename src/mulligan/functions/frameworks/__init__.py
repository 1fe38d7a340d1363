"""Agents of frameworks: a file for each says how they are run, given notes and read. It imports none of them."""
