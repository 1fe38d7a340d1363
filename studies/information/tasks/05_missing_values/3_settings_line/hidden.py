assert settings_line({"user": None, "door": "left"}) == "user=-?-|door=left"
assert settings_line({"size": 10}) == "size=10"
assert settings_line({"key": None}) == "key=-?-"
assert settings_line({"a": 5, "b": None, "c": None}) == "a=5|b=-?-|c=-?-"
