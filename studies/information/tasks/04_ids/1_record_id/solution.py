def record_id(kind, number):
    return f"{kind[:2].upper()}/{number:05d}"
