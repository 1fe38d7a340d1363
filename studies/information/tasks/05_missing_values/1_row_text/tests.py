assert row_text(["tea", None, 4]) == "tea|-?-|4"
