assert seat_label("B", 1) == "1^B"
assert seat_label("D", 30) == "30^D"
assert seat_label("F", 5) == "5^F"
assert seat_label("K", 18) == "18^K"
