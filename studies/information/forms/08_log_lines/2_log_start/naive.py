def log_start(name):
    return f"[info] {name} started"
