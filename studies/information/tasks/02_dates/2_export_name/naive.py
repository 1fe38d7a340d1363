def export_name(report, year, month, day):
    return f"{report}_{year}-{month:02d}-{day:02d}.csv"
