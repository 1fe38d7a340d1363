def gray_text(level):
    return f"<{level}.{level}.{level}>"
