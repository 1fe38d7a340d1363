assert last_page(9) == "p9|9"
assert last_page(31) == "p31|31"
