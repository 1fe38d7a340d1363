assert vowel_starts(["apple", "pear", "orange"]) == 2
assert vowel_starts(["yes"]) == 1
assert vowel_starts(["yarn", "igloo", "tree"]) == 2
assert vowel_starts(["tray", "sky"]) == 0
assert vowel_starts(["egg", "under", "ice"]) == 3
assert vowel_starts([]) == 0
