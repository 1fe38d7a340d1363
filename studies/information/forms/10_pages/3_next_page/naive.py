def next_page(page, total):
    return f"{page + 1}/{total}"
