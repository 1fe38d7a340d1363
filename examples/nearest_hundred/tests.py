assert nearest_hundred(120) == 100
assert nearest_hundred(180) == 200
assert nearest_hundred(400) == 400
assert nearest_hundred(250) == 300
assert nearest_hundred(450) == 500
assert nearest_hundred(50) == 100
