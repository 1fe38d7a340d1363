assert cart_weight([5, 10]) == "g#15"
assert cart_weight([100, 200, 300]) == "g#600"
