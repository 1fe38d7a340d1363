assert log_start("bot") == "info >> bot started"
assert log_start("clock") == "info >> clock started"
assert log_start("sync") == "info >> sync started"
assert log_start("radio") == "info >> radio started"
