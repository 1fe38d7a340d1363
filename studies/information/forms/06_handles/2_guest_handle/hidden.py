assert guest_handle(1) == "~guest1~"
assert guest_handle(30) == "~guest30~"
assert guest_handle(99) == "~guest99~"
assert guest_handle(404) == "~guest404~"
