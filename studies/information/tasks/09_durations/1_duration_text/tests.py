assert duration_text(125) == "2h+05"
assert duration_text(50) == "0h+50"
