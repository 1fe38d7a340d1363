def tag_line(tags):
    return " ".join(sorted(tags, key=lambda tag: (len(tag), tag)))
