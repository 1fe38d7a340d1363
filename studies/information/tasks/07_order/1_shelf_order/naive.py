def shelf_order(names):
    return sorted(names)
