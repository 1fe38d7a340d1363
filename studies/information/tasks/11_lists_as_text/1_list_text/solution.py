def list_text(items):
    return f"{len(items)}: {' / '.join(items)}"
