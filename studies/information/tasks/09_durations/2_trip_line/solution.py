def trip_line(place, minutes):
    return f"{place} {minutes // 60}h+{minutes % 60:02d}"
