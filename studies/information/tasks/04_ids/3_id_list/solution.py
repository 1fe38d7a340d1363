def id_list(kind, numbers):
    return [f"{kind[:2].upper()}/{number:05d}" for number in numbers]
