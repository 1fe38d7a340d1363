def paint_text(red, green, blue):
    return f"rgb({red}, {green}, {blue})"
