assert longest_pause([[9, 10], [11, 12], [15, 16]]) == 3
assert longest_pause([[9, 12], [12, 13], [14, 20]]) == 1
assert longest_pause([[1, 5], [5, 8]]) == 0
assert longest_pause([[9, 17]]) == 0
assert longest_pause([]) == 0
