assert user_handle("Ann") == "~ann~"
assert user_handle("BOB") == "~bob~"
