assert team_line("Blue", ["Cy"]) == "Blue 1: Cy"
assert team_line("Gold", ["Di", "Ed", "Flo"]) == "Gold 3: Di / Ed / Flo"
assert team_line("Old Boys", ["Gus", "Hal"]) == "Old Boys 2: Gus / Hal"
assert team_line("Jade", ["Ida", "Jon", "Kai", "Lea"]) == "Jade 4: Ida / Jon / Kai / Lea"
