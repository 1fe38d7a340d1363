def release_tag(name, major, minor):
    return f"{name.lower()}~{major}.{minor:02d}"
