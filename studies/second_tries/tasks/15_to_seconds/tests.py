# ruff: noqa: E711
assert to_seconds("1h 90 m") == 9000
assert to_seconds("1d2s") == 86402
assert to_seconds("2h2h") == None
assert to_seconds("1h20") == 4800
assert to_seconds("3m7") == 187
assert to_seconds("5") == 300
assert to_seconds("-1m 5s") == -65
assert to_seconds("5m1h") == None
assert to_seconds("5s 10") == None
assert to_seconds("") == None
