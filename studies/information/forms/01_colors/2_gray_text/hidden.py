assert gray_text(0) == "<0.0.0>"
assert gray_text(9) == "<9.9.9>"
assert gray_text(200) == "<200.200.200>"
assert gray_text(255) == "<255.255.255>"
