def gray_text(level):
    return f"rgb({level}, {level}, {level})"
