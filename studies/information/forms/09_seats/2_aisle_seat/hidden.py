assert aisle_seat("A") == "1^A"
assert aisle_seat("E") == "1^E"
assert aisle_seat("G") == "1^G"
assert aisle_seat("M") == "1^M"
