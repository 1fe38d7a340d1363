def event_records(titles):
    return [{"$kind": "event", "$title": title} for title in titles]
