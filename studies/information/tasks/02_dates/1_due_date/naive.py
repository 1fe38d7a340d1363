def due_date(year, month, day):
    return f"{year}-{month:02d}-{day:02d}"
