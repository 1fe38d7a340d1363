def due_date(year, month, day):
    return f"y{year % 100:02d}.m{month:02d}.d{day:02d}"
