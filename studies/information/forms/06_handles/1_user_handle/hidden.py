assert user_handle("Eva") == "~eva~"
assert user_handle("kim") == "~kim~"
assert user_handle("Joe") == "~joe~"
assert user_handle("MIA") == "~mia~"
