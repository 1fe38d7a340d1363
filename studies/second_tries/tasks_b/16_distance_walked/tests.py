assert distance_walked([3, 4]) == 7
assert distance_walked([3, -4]) == 7
assert distance_walked([-5]) == 5
assert distance_walked([2, -2, 0, 1]) == 5
assert distance_walked([]) == 0
