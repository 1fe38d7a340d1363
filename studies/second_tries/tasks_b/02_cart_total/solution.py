def cart_total(cart, prices):
    total = 0
    for name, count in cart.items():
        total += count * prices.get(name, 0)
    return total
