assert duration_text(61) == "1h+01"
assert duration_text(600) == "10h+00"
assert duration_text(8) == "0h+08"
assert duration_text(239) == "3h+59"
