assert event_records(["Race"]) == [{"$kind": "event", "$title": "Race"}]
assert event_records([]) == []
assert event_records(["Open Day", "Quiz"]) == [
    {"$kind": "event", "$title": "Open Day"},
    {"$kind": "event", "$title": "Quiz"},
]
assert event_records(["A", "B", "C"]) == [
    {"$kind": "event", "$title": "A"},
    {"$kind": "event", "$title": "B"},
    {"$kind": "event", "$title": "C"},
]
