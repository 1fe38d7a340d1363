def changelog_heads(releases):
    return [f"{name.lower()}~{major}.{minor:02d}" for name, major, minor in releases]
