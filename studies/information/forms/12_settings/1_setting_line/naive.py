def setting_line(key, value):
    return f"{key}={value}"
