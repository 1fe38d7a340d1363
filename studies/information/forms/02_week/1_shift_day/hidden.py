assert shift_day("Tuesday") == "TU*"
assert shift_day("Friday") == "FR*"
assert shift_day("Sunday") == "SU*"
assert shift_day("Saturday") == "SA*"
