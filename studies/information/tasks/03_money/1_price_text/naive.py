def price_text(cents):
    return f"${cents / 100:.2f}"
