def lamp_text(room, is_on):
    return f"{room}: on" if is_on else f"{room}: off"
