assert total_score([[1, 2], [3, 4]]) == "4==6"
assert total_score([[5, 0]]) == "5==0"
