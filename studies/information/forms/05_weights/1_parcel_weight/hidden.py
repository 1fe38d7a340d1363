assert parcel_weight(1) == "g#1"
assert parcel_weight(999) == "g#999"
assert parcel_weight(75) == "g#75"
assert parcel_weight(1200) == "g#1200"
