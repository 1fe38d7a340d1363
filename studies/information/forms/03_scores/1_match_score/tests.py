assert match_score(3, 1) == "3==1"
assert match_score(0, 2) == "0==2"
