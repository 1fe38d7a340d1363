assert roster({"dora": 3, "al": 1, "charles": 2, "bob": 0, "abby": 9}) == ["al", "abby", "dora", "charles"]
