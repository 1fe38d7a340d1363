def hide_word(text, secret):
    return text.replace(secret, "***", 1)
