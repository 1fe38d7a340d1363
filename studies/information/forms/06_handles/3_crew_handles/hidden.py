assert crew_handles(["Kim"]) == ["~kim~"]
assert crew_handles(["Lea", "MAX"]) == ["~lea~", "~max~"]
assert crew_handles(["ian", "Joy", "Ray"]) == ["~ian~", "~joy~", "~ray~"]
assert crew_handles(["Sue"]) == ["~sue~"]
