def open_days(days):
    return [day[:2].upper() + "*" for day in days]
