assert map_ratio(100) == "1//100"
assert map_ratio(5000) == "1//5000"
