assert lamp_text("hall", True) == "+hall"
assert lamp_text("attic", False) == "~attic"
