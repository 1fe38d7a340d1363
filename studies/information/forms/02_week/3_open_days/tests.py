assert open_days(["Monday", "Friday"]) == ["MO*", "FR*"]
assert open_days(["Sunday"]) == ["SU*"]
