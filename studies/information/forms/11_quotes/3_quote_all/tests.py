assert quote_all(["a", "b"]) == ["^a^", "^b^"]
assert quote_all(["well done"]) == ["^well done^"]
