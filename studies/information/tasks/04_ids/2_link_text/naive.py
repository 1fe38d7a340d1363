def link_text(source, target):
    return f"{source[0]}-{source[1]} -> {target[0]}-{target[1]}"
