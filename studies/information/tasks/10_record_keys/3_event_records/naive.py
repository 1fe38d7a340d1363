def event_records(titles):
    return [{"title": title} for title in titles]
