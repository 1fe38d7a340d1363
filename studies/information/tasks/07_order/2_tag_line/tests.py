assert tag_line(["urgent", "bug", "later", "ui", "docs"]) == "ui bug docs later urgent"
assert tag_line(["beta", "api", "alpha", "test"]) == "api beta test alpha"
