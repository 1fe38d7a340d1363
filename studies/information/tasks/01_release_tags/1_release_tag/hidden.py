assert release_tag("Maple", 1, 4) == "maple~1.04"
assert release_tag("Elm", 10, 30) == "elm~10.30"
assert release_tag("Willow", 0, 0) == "willow~0.00"
assert release_tag("Pine", 7, 12) == "pine~7.12"
