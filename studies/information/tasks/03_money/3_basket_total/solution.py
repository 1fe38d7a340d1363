def basket_total(prices):
    total = sum(prices)
    return f"{total // 100}_{total % 100:02d} cr"
