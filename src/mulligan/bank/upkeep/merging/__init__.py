"""How lessons that are alike become one: one file, one strategy."""
