assert said_by("Ann") == "^I am Ann^"
assert said_by("Tom") == "^I am Tom^"
