def spread(values):
    if not values:
        return -1
    return max(values) - min(values)
