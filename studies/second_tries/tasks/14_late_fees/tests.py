assert late_fees([[5, 10, 3000]]) == 75
assert late_fees([[5, 7, 3000]]) == 0
assert late_fees([[5, 8, 3000]]) == 45
assert late_fees([[0, 9, 3000]]) == 155
assert late_fees([[0, 9, 105]]) == 53
assert late_fees([[9, 2, 3000], [1, 5, 3000]]) == 60
assert late_fees([[0, 3, 900], [0, 4, 900], [0, 5, 900]]) == 135
assert late_fees([[0, 3, 900], [0, 4, 900], [0, 1, 900]]) == 105
assert late_fees([[0, 3, 900], [0, 3, 900], [0, 4, 900], [0, 6, 900]]) == 195
assert late_fees([]) == 0
