assert quote_text("no") == "^no^"
assert quote_text("come in") == "^come in^"
assert quote_text("all is well") == "^all is well^"
assert quote_text("go") == "^go^"
