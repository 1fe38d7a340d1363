assert list_text(["tea", "jam", "oil"]) == "3: tea / jam / oil"
assert list_text(["salt"]) == "1: salt"
