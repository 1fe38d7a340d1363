assert map_ratio(10) == "1//10"
assert map_ratio(25) == "1//25"
assert map_ratio(750) == "1//750"
assert map_ratio(2000) == "1//2000"
