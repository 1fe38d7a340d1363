assert deep_path(["x", "y"]) == "x::y"
assert deep_path(["one", "two", "three", "four.md"]) == "one::two::three::four.md"
assert deep_path(["src", "app", "main.py"]) == "src::app::main.py"
assert deep_path(["img", "old", "cat.png"]) == "img::old::cat.png"
