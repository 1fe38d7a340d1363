assert row_text([None, 12, "jam", None]) == "-?-|12|jam|-?-"
assert row_text(["oil"]) == "oil"
assert row_text([7, 8, None]) == "7|8|-?-"
assert row_text([None]) == "-?-"
