assert release_tag("Birch", 3, 7) == "birch~3.07"
assert release_tag("Oak", 12, 15) == "oak~12.15"
