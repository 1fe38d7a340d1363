assert work_time([90, 45]) == "2h+15"
assert work_time([30, 32]) == "1h+02"
