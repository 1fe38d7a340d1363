def shift_day(day):
    return day[:3]
