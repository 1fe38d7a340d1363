assert flags_line({"quiet": False}) == "~quiet"
assert flags_line({"fast": True, "safe": True}) == "+fast +safe"
assert flags_line({"cache": False, "retry": False, "sync": True}) == "~cache ~retry +sync"
assert flags_line({"beta": True}) == "+beta"
