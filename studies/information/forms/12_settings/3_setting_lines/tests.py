assert setting_lines({"depth": 3}) == ["depth := 3;"]
assert setting_lines({"a": 1, "b": 2}) == ["a := 1;", "b := 2;"]
