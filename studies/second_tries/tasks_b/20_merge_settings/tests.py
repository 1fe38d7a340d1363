assert merge_settings({"a": 1}, {"b": 2}) == {"a": 1, "b": 2}
assert merge_settings({"a": 1}, {"a": 9}) == {"a": 1}
assert merge_settings({"a": 1, "b": 2}, {"b": 5, "c": 3}) == {"a": 1, "b": 2, "c": 3}
assert merge_settings({}, {"a": 4}) == {"a": 4}
assert merge_settings({"a": 0}, {"a": 7}) == {"a": 0}
assert merge_settings({}, {}) == {}
