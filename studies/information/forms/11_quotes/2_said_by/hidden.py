assert said_by("Bo") == "^I am Bo^"
assert said_by("Eva") == "^I am Eva^"
assert said_by("Kim") == "^I am Kim^"
assert said_by("Max") == "^I am Max^"
