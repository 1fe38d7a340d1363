assert due_date(2019, 12, 1) == "y19.m12.d01"
assert due_date(2005, 6, 30) == "y05.m06.d30"
assert due_date(2040, 1, 9) == "y40.m01.d09"
assert due_date(2027, 10, 18) == "y27.m10.d18"
