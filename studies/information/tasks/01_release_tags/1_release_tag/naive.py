def release_tag(name, major, minor):
    return f"{name}-{major}.{minor}"
