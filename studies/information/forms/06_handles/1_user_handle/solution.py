def user_handle(name):
    return f"~{name.lower()}~"
