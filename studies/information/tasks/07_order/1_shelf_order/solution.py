def shelf_order(names):
    return sorted(names, key=lambda name: (len(name), name))
