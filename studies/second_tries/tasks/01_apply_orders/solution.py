def apply_orders(stock, orders):
    left = dict(stock)
    for name, change in orders:
        after = left.get(name, 0) + change
        if after >= 0:
            left[name] = after
    return {name: count for name, count in left.items() if count > 0}
