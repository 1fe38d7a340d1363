assert check_range("age", 150, 0, 120) == "!AGE! 150 not in 0..120"
assert check_range("speed", 50, 5, 90) is None
