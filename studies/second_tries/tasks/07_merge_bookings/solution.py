def merge_bookings(bookings):
    spans = []
    for start, end in bookings:
        if start > end:
            start, end = end, start
        if start < end:
            spans.append([start, end])
    spans.sort()
    merged = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged
