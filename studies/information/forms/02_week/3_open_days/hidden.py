assert open_days(["Tuesday"]) == ["TU*"]
assert open_days(["Saturday", "Sunday"]) == ["SA*", "SU*"]
assert open_days(["Wednesday", "Thursday"]) == ["WE*", "TH*"]
assert open_days(["Friday"]) == ["FR*"]
