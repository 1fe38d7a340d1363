assert row_seats("B", 2) == ["1^B", "2^B"]
assert row_seats("A", 3) == ["1^A", "2^A", "3^A"]
