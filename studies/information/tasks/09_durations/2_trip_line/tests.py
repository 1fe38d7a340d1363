assert trip_line("Bern", 63) == "Bern 1h+03"
assert trip_line("Oslo", 840) == "Oslo 14h+00"
