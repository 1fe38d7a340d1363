assert page_label(2, 9) == "p2|9"
assert page_label(1, 3) == "p1|3"
