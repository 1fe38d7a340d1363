assert final_score([6, 4]) == "6==4"
assert final_score([7, 5]) == "7==5"
