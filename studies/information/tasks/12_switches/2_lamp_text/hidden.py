assert lamp_text("kitchen", True) == "+kitchen"
assert lamp_text("porch", False) == "~porch"
assert lamp_text("cellar", True) == "+cellar"
assert lamp_text("office", False) == "~office"
