assert days_to_goal([5, 5, 5], 10) == 2
assert days_to_goal([5, 4, 3], 10) == 3
assert days_to_goal([20, 1], 10) == 1
assert days_to_goal([0, 0, 8], 8) == 3
assert days_to_goal([1, 2], 10) is None
assert days_to_goal([], 1) is None
