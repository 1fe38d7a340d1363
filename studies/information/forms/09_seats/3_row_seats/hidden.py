assert row_seats("C", 1) == ["1^C"]
assert row_seats("D", 4) == ["1^D", "2^D", "3^D", "4^D"]
assert row_seats("E", 2) == ["1^E", "2^E"]
assert row_seats("Z", 5) == ["1^Z", "2^Z", "3^Z", "4^Z", "5^Z"]
