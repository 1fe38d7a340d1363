assert seat_label("C", 7) == "7^C"
assert seat_label("A", 12) == "12^A"
