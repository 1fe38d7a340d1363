assert log_entry("warn", "low power") == "warn >> low power"
assert log_entry("info", "saved") == "info >> saved"
assert log_entry("debug", "x is 3") == "debug >> x is 3"
assert log_entry("error", "gone") == "error >> gone"
