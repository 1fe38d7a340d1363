def row_seats(row, count):
    return [f"{row}{n}" for n in range(1, count + 1)]
