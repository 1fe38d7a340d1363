def drop_repeats(words):
    seen = set()
    kept = []
    for word in words:
        if word.lower() not in seen:
            seen.add(word.lower())
            kept.append(word)
    return kept
