def log_entry(level, text):
    return f"{level} >> {text}"
