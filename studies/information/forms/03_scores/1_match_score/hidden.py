assert match_score(1, 1) == "1==1"
assert match_score(4, 0) == "4==0"
assert match_score(2, 5) == "2==5"
assert match_score(10, 9) == "10==9"
