assert log_entry("info", "started") == "info >> started"
assert log_entry("error", "no disk") == "error >> no disk"
