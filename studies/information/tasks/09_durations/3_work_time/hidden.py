assert work_time([240, 240]) == "8h+00"
assert work_time([7]) == "0h+07"
assert work_time([]) == "0h+00"
assert work_time([100, 200, 333]) == "10h+33"
