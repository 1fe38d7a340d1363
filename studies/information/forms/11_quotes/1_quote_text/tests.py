assert quote_text("so be it") == "^so be it^"
assert quote_text("yes") == "^yes^"
