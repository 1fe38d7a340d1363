def basket_total(prices):
    return f"${sum(prices) / 100:.2f}"
