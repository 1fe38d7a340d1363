assert mix_ratio(3, 1) == "3//1"
assert mix_ratio(5, 2) == "5//2"
