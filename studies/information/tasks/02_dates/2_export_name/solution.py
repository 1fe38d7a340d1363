def export_name(report, year, month, day):
    return f"{report}_y{year % 100:02d}.m{month:02d}.d{day:02d}"
