assert last_page(1) == "p1|1"
assert last_page(4) == "p4|4"
assert last_page(15) == "p15|15"
assert last_page(200) == "p200|200"
