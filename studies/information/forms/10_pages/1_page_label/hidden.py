assert page_label(4, 4) == "p4|4"
assert page_label(7, 10) == "p7|10"
assert page_label(12, 80) == "p12|80"
assert page_label(5, 6) == "p5|6"
