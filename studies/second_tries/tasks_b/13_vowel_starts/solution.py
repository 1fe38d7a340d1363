def vowel_starts(words):
    return sum(1 for word in words if word[0] in "aeiouy")
