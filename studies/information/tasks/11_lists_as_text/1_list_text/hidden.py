assert list_text(["ink", "pen"]) == "2: ink / pen"
assert list_text(["rope"]) == "1: rope"
assert list_text(["b", "a", "d", "c"]) == "4: b / a / d / c"
assert list_text(["cup", "cup", "mug", "jar", "pot"]) == "5: cup / cup / mug / jar / pot"
