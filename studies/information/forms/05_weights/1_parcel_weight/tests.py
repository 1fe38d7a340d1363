assert parcel_weight(450) == "g#450"
assert parcel_weight(20) == "g#20"
