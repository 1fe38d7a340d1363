def menu_keys(titles):
    return [title.lower().replace(" ", "_").replace("/", "_") for title in titles]
