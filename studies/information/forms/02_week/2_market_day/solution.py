def market_day(day):
    return day[:2].upper() + "*"
