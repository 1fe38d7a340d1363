assert trip_line("Rome", 9) == "Rome 0h+09"
assert trip_line("Lyon", 150) == "Lyon 2h+30"
assert trip_line("Riga", 1201) == "Riga 20h+01"
assert trip_line("Kyiv", 59) == "Kyiv 0h+59"
