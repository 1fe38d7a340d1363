def trip_line(place, minutes):
    return f"{place} {minutes // 60}:{minutes % 60:02d}"
