def row_seats(row, count):
    return [f"{n}^{row}" for n in range(1, count + 1)]
