assert missing_keys({}, ["id"]) == ["!ID! missing"]
assert missing_keys({"a": 1, "b": 2}, ["a", "b"]) == []
assert missing_keys({"size": 3}, ["color", "size"]) == ["!COLOR! missing"]
assert missing_keys({"to": "Bo"}, ["subject", "body", "to"]) == ["!SUBJECT! missing", "!BODY! missing"]
