def check_range(name, value, low, high):
    if low <= value <= high:
        return None
    return f"!{name.upper()}! {value} not in {low}..{high}"
