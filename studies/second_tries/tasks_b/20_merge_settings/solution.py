def merge_settings(first, second):
    return {**second, **first}
