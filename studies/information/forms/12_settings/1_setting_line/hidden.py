assert setting_line("size", 12) == "size := 12;"
assert setting_line("retries", 0) == "retries := 0;"
assert setting_line("width", 640) == "width := 640;"
assert setting_line("limit", 5) == "limit := 5;"
