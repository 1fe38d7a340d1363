"""Judges a function by what it returns for many arguments, next to what another program returns: see `judge`."""
