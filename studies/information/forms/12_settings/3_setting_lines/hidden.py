assert setting_lines({"x": 9}) == ["x := 9;"]
assert setting_lines({"rows": 5, "cols": 7}) == ["rows := 5;", "cols := 7;"]
assert setting_lines({"min": 0, "max": 10}) == ["min := 0;", "max := 10;"]
assert setting_lines({"k": 4}) == ["k := 4;"]
