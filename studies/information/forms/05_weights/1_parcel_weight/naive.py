def parcel_weight(grams):
    return f"{grams} g"
