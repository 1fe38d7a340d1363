def settings_line(settings):
    parts = [f"{name}=-?-" if value is None else f"{name}={value}" for name, value in settings.items()]
    return "|".join(parts)
