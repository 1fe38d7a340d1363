assert event_records(["Fair", "Ball"]) == [{"$kind": "event", "$title": "Fair"}, {"$kind": "event", "$title": "Ball"}]
