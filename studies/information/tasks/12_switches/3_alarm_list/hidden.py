assert alarm_list(["frost"], ["frost"]) == ["+frost"]
assert alarm_list(["window", "gate"], []) == ["~window", "~gate"]
assert alarm_list(["gas", "fire", "siren"], ["siren", "gas"]) == ["+gas", "~fire", "+siren"]
assert alarm_list([], []) == []
