assert total_score([[2, 2], [2, 2]]) == "4==4"
assert total_score([[9, 1]]) == "9==1"
assert total_score([[1, 0], [0, 1], [1, 1]]) == "2==2"
assert total_score([[6, 3], [4, 6]]) == "10==9"
