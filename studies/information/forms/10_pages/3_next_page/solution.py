def next_page(page, total):
    return f"p{page + 1}|{total}"
