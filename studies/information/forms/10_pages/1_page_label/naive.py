def page_label(page, total):
    return f"{page}/{total}"
