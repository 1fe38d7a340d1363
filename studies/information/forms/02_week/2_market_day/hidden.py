assert market_day("Monday") == "MO*"
assert market_day("Wednesday") == "WE*"
assert market_day("Sunday") == "SU*"
assert market_day("Thursday") == "TH*"
