assert pair_weight(5) == "g#10"
assert pair_weight(150) == "g#300"
assert pair_weight(444) == "g#888"
assert pair_weight(61) == "g#122"
