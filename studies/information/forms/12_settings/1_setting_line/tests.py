assert setting_line("depth", 3) == "depth := 3;"
assert setting_line("port", 80) == "port := 80;"
