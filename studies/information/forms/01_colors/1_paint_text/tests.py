assert paint_text(10, 200, 30) == "<10.200.30>"
assert paint_text(0, 5, 255) == "<0.5.255>"
