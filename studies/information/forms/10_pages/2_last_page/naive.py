def last_page(total):
    return f"{total}/{total}"
