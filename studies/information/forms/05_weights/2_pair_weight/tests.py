assert pair_weight(300) == "g#600"
assert pair_weight(210) == "g#420"
