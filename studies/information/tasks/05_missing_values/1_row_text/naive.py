def row_text(values):
    return ",".join("" if value is None else str(value) for value in values)
