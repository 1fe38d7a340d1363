def link_text(source, target):
    return "=>".join(f"{kind[:2].upper()}/{number:05d}" for kind, number in [source, target])
