def tag_line(tags):
    return " ".join(sorted(tags))
