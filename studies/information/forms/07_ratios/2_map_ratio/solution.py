def map_ratio(scale):
    return f"1//{scale}"
