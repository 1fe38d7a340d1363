def page_label(page, total):
    return f"p{page}|{total}"
