assert win_ratio([True]) == "1//0"
assert win_ratio([True, True, False, False]) == "2//2"
assert win_ratio([False, False, False]) == "0//3"
assert win_ratio([True, True, True, False]) == "3//1"
