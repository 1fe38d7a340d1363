def page_slug(title):
    return title.lower().replace(" ", "-").replace("/", "-")
