def market_day(day):
    return day
