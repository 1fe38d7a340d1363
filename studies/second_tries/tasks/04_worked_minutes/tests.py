assert worked_minutes(["09:00-11:45"]) == 165
assert worked_minutes(["22:30-01:15"]) == 165
assert worked_minutes(["07:00-13:00"]) == 360
assert worked_minutes(["07:00-13:01"]) == 331
assert worked_minutes(["06:00-06:00"]) == 1410
assert worked_minutes(["08:00-12:00", "13:00-17:00"]) == 480
assert worked_minutes(["21:00-05:00"]) == 450
assert worked_minutes([]) == 0
