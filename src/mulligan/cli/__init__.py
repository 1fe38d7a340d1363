"""The command line. Holds no logic: what it can do, the library can do in as few lines."""
