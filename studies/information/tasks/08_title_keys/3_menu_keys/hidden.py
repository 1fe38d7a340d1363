assert menu_keys(["Open Recent File"]) == ["open--recent--file"]
assert menu_keys(["Undo/Redo", "Find Next"]) == ["undo==redo", "find--next"]
assert menu_keys(["Quit"]) == ["quit"]
assert menu_keys(["Zoom In/Out", "Full Screen", "Help"]) == ["zoom--in==out", "full--screen", "help"]
