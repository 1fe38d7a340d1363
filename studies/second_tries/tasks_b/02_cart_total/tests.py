assert cart_total({"tea": 2, "jam": 1}, {"tea": 300, "jam": 450}) == 1050
assert cart_total({"tea": 3}, {"tea": 100, "jam": 450}) == 300
assert cart_total({"tea": 1, "bag": 4}, {"tea": 250}) == 250
assert cart_total({"tea": 0}, {"tea": 250}) == 0
assert cart_total({}, {"tea": 250}) == 0
