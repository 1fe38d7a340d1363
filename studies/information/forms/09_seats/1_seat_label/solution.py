def seat_label(row, number):
    return f"{number}^{row}"
