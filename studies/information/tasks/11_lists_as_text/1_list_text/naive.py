def list_text(items):
    return ", ".join(items)
