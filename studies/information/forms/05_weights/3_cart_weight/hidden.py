assert cart_weight([7]) == "g#7"
assert cart_weight([50, 50]) == "g#100"
assert cart_weight([1, 2, 3, 4]) == "g#10"
assert cart_weight([900, 99]) == "g#999"
