def id_list(kind, numbers):
    return [f"{kind}-{number}" for number in numbers]
