assert paint_text(1, 2, 3) == "<1.2.3>"
assert paint_text(7, 77, 177) == "<7.77.177>"
assert paint_text(255, 0, 90) == "<255.0.90>"
assert paint_text(64, 32, 16) == "<64.32.16>"
