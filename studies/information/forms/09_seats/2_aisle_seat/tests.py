assert aisle_seat("C") == "1^C"
assert aisle_seat("H") == "1^H"
