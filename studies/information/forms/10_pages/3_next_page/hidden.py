assert next_page(2, 4) == "p3|4"
assert next_page(10, 20) == "p11|20"
assert next_page(3, 5) == "p4|5"
assert next_page(7, 8) == "p8|8"
