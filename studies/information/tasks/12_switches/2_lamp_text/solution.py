def lamp_text(room, is_on):
    return f"+{room}" if is_on else f"~{room}"
