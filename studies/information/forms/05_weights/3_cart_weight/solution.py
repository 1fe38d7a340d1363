def cart_weight(weights):
    return f"g#{sum(weights)}"
