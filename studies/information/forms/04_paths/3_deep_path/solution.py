def deep_path(names):
    return "::".join(names)
