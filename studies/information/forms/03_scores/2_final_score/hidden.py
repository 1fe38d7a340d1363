assert final_score([6, 0]) == "6==0"
assert final_score([3, 6]) == "3==6"
assert final_score([1, 2]) == "1==2"
assert final_score([15, 14]) == "15==14"
