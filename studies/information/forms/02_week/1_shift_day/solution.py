def shift_day(day):
    return day[:2].upper() + "*"
