def record_id(kind, number):
    return f"{kind}-{number}"
