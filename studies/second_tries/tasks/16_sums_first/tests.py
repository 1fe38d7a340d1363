# ruff: noqa: E711
assert sums_first("12 + 30") == 42
assert sums_first("4*5+1") == 24
assert sums_first("10-4-3") == 3
assert sums_first("1+2*3+4") == 21
assert sums_first("2*3/4") == 1
assert sums_first("20/2*5") == 50
assert sums_first("-7/2") == -3
assert sums_first("6 - -2") == 8
assert sums_first("2*-3+5") == 4
assert sums_first("9/3-3") == None
