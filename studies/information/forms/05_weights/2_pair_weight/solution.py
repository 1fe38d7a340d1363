def pair_weight(grams):
    return f"g#{2 * grams}"
