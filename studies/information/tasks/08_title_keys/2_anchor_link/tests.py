assert anchor_link("Install On/Off Line") == "#install--on==off--line"
assert anchor_link("Known Bugs") == "#known--bugs"
