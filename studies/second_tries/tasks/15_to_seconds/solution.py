def to_seconds(text):
    text = text.replace(" ", "")
    sign = 1
    if text.startswith("-"):
        sign = -1
        text = text[1:]
    if not text:
        return None
    units = "dhms"
    size = [86400, 3600, 60, 1]
    total = 0
    last = -1
    digits = ""
    for ch in text:
        if ch in "0123456789":
            digits += ch
        elif ch in units and digits and units.index(ch) > last:
            last = units.index(ch)
            total += int(digits) * size[last]
            digits = ""
        else:
            return None
    if digits:
        below = 2 if last == -1 else last + 1
        if below > 3:
            return None
        total += int(digits) * size[below]
    return sign * total
