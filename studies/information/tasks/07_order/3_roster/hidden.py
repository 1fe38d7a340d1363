assert roster({"zed": 5, "anna": 5}) == ["zed", "anna"]
assert roster({"walter": 1, "tim": 4, "sue": 2, "jo": 0}) == ["sue", "tim", "walter"]
assert roster({"maria": 7, "kevin": 1, "li": 3}) == ["li", "kevin", "maria"]
assert roster({"pat": 0}) == []
