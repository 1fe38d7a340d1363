assert export_name("visits", 2022, 8, 15) == "visits_y22.m08.d15"
assert export_name("costs", 2008, 12, 4) == "costs_y08.m12.d04"
assert export_name("hours", 2041, 2, 28) == "hours_y41.m02.d28"
assert export_name("errors", 2026, 11, 6) == "errors_y26.m11.d06"
