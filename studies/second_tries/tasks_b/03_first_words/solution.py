def first_words(text):
    return [line.split()[0] for line in text.split("\n") if line.strip()]
