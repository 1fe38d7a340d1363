def guest_handle(number):
    return f"~guest{number}~"
