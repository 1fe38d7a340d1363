assert day_number("Sunday") == 1
assert day_number("Monday") == 2
assert day_number("Wednesday") == 4
assert day_number("Friday") == 6
assert day_number("Saturday") == 7
