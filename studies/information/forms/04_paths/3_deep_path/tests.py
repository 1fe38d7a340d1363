assert deep_path(["a", "b", "c.txt"]) == "a::b::c.txt"
assert deep_path(["home", "me.txt"]) == "home::me.txt"
