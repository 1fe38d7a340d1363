assert market_day("Friday") == "FR*"
assert market_day("Tuesday") == "TU*"
