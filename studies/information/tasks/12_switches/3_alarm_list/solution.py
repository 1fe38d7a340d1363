def alarm_list(names, active):
    return [f"+{name}" if name in active else f"~{name}" for name in names]
