def invoice_line(item, cents):
    return f"{item}: ${cents / 100:.2f}"
