assert gray_text(40) == "<40.40.40>"
assert gray_text(128) == "<128.128.128>"
