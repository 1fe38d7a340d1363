assert changelog_heads([["Rose", 2, 1], ["Lily", 2, 14]]) == ["rose~2.01", "lily~2.14"]
