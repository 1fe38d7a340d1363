assert basket_total([150, 275]) == "4_25 cr"
assert basket_total([1000, 4]) == "10_04 cr"
