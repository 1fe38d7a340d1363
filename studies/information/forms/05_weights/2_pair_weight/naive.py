def pair_weight(grams):
    return f"{2 * grams} g"
