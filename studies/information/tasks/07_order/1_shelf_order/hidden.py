assert shelf_order(["banana", "pear", "nut"]) == ["nut", "pear", "banana"]
assert shelf_order(["oat", "rye", "barley", "corn"]) == ["oat", "rye", "corn", "barley"]
assert shelf_order(["melon", "lemon", "lime"]) == ["lime", "lemon", "melon"]
assert shelf_order([]) == []
