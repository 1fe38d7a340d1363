assert changelog_heads([["Iris", 5, 3]]) == ["iris~5.03"]
assert changelog_heads([["Tulip", 1, 20], ["Fern", 1, 6], ["Moss", 9, 0]]) == ["tulip~1.20", "fern~1.06", "moss~9.00"]
assert changelog_heads([["Daisy", 10, 8], ["Poppy", 0, 11]]) == ["daisy~10.08", "poppy~0.11"]
assert changelog_heads([]) == []
