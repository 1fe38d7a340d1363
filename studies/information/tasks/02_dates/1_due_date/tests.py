assert due_date(2024, 3, 7) == "y24.m03.d07"
assert due_date(2031, 11, 25) == "y31.m11.d25"
