def pick_words(words, numbers):
    return [words[number - 1] for number in numbers]
