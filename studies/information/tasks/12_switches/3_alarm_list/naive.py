def alarm_list(names, active):
    return [f"{name}: on" if name in active else f"{name}: off" for name in names]
