def anchor_link(title):
    return "#" + title.lower().replace(" ", "-").replace("/", "-")
