assert quote_all(["ok"]) == ["^ok^"]
assert quote_all(["one", "two", "three"]) == ["^one^", "^two^", "^three^"]
assert quote_all(["who", "what"]) == ["^who^", "^what^"]
assert quote_all(["stop"]) == ["^stop^"]
