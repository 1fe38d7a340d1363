def changelog_heads(releases):
    return [f"{name} {major}.{minor}" for name, major, minor in releases]
