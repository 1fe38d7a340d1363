assert check_range("weight", 2, 10, 80) == "!WEIGHT! 2 not in 10..80"
assert check_range("level", 11, 1, 10) == "!LEVEL! 11 not in 1..10"
assert check_range("floor", -3, -2, 40) == "!FLOOR! -3 not in -2..40"
assert check_range("page", 7, 7, 9) is None
