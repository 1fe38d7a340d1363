assert win_ratio([True, False, True]) == "2//1"
assert win_ratio([False]) == "0//1"
