def invoice_line(item, cents):
    return f"{item}: {cents // 100}_{cents % 100:02d} cr"
