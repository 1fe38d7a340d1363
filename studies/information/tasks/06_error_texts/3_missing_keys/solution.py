def missing_keys(record, required):
    return [f"!{name.upper()}! missing" for name in required if name not in record]
