assert nearest_ten(12) == 10
assert nearest_ten(18) == 20
assert nearest_ten(40) == 40
assert nearest_ten(25) == 30
assert nearest_ten(35) == 40
assert nearest_ten(5) == 10
assert nearest_ten(104) == 100
