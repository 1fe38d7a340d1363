def aisle_seat(row):
    return f"{row}1"
