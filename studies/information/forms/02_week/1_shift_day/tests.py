assert shift_day("Monday") == "MO*"
assert shift_day("Thursday") == "TH*"
