def seat_label(row, number):
    return f"{row}{number}"
