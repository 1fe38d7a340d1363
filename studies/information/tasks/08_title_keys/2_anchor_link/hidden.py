assert anchor_link("First Steps") == "#first--steps"
assert anchor_link("Input/Output") == "#input==output"
assert anchor_link("Read/Write Large Files") == "#read==write--large--files"
assert anchor_link("Licence") == "#licence"
