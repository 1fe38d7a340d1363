def menu_keys(titles):
    return [title.lower().replace(" ", "--").replace("/", "==") for title in titles]
