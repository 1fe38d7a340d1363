assert guest_handle(7) == "~guest7~"
assert guest_handle(12) == "~guest12~"
