assert next_page(1, 3) == "p2|3"
assert next_page(6, 9) == "p7|9"
