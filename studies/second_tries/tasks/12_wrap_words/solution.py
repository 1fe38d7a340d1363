def wrap_words(text, width):
    lines = []
    current = ""
    for word in text.split():
        if len(word) > width:
            if current:
                lines.append(current)
            while len(word) > width:
                lines.append(word[: width - 1] + "-")
                word = word[width - 1 :]
            current = word
        elif not current:
            current = word
        elif len(current) + 1 + len(word) <= width:
            current += " " + word
        else:
            lines.append(current)
            current = word
    if current:
        lines.append(current)
    return lines
