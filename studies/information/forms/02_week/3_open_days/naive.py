def open_days(days):
    return list(days)
