assert mix_ratio(1, 1) == "1//1"
assert mix_ratio(4, 3) == "4//3"
assert mix_ratio(2, 7) == "2//7"
assert mix_ratio(9, 8) == "9//8"
