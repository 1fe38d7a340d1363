def missing_keys(record, required):
    return [f"Missing field: {name}" for name in required if name not in record]
