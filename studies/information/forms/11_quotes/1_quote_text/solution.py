def quote_text(text):
    return f"^{text}^"
