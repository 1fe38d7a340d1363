def swatch_list(colors):
    return [f"rgb({r}, {g}, {b})" for r, g, b in colors]
