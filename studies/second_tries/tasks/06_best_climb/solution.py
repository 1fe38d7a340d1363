def best_climb(values):
    best = [-1, 0]
    start = 0
    for i in range(len(values)):
        if i > 0 and values[i] <= values[i - 1]:
            start = i
        count = i - start + 1
        if count >= 2 and count >= best[1]:
            best = [start, count]
    return best
