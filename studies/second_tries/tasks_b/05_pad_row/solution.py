def pad_row(row, width):
    return row + [0] * max(0, width - len(row))
