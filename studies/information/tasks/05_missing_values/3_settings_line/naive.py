def settings_line(settings):
    return ", ".join(f"{name}={value}" for name, value in settings.items())
