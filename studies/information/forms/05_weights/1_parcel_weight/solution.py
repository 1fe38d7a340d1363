def parcel_weight(grams):
    return f"g#{grams}"
