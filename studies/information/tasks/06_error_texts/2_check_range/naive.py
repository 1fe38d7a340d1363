def check_range(name, value, low, high):
    if low <= value <= high:
        return None
    return f"{name} must be between {low} and {high}, not {value}"
