assert crew_handles(["Ann", "Bo"]) == ["~ann~", "~bo~"]
assert crew_handles(["ZOE"]) == ["~zoe~"]
