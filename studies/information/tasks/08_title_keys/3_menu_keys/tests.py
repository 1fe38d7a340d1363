assert menu_keys(["Save As", "Cut/Paste All"]) == ["save--as", "cut==paste--all"]
