def shorten_name(name):
    words = name.split()
    if not words:
        return ""
    front = ""
    for word in words[:-1]:
        if word[0].islower():
            continue
        front += "-".join(part[0].upper() + "." for part in word.split("-"))
    if not front:
        return words[-1]
    return front + " " + words[-1]
