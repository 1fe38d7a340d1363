def crew_handles(names):
    return [f"~{name.lower()}~" for name in names]
