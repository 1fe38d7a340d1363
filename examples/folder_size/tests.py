assert folder_size([1, 2]) == "[3k]"
assert folder_size([10, 20, 30]) == "[60k]"
assert folder_size([]) == "[0k]"
