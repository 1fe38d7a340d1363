def price_text(cents):
    return f"{cents // 100}_{cents % 100:02d} cr"
