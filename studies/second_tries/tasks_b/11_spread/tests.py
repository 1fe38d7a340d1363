assert spread([4, 9, 6]) == 5
assert spread([-2, 3]) == 5
assert spread([7]) == 0
assert spread([5, 5, 5]) == 0
assert spread([]) == -1
