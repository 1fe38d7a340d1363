assert file_path("docs", "a.txt") == "docs::a.txt"
assert file_path("img", "sun.png") == "img::sun.png"
