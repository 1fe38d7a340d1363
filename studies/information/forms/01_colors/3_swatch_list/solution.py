def swatch_list(colors):
    return [f"<{r}.{g}.{b}>" for r, g, b in colors]
