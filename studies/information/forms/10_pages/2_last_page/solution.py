def last_page(total):
    return f"p{total}|{total}"
