def aisle_seat(row):
    return f"1^{row}"
