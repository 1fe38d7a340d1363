def cart_weight(weights):
    return f"{sum(weights)} g"
