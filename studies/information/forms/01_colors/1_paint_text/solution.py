def paint_text(red, green, blue):
    return f"<{red}.{green}.{blue}>"
