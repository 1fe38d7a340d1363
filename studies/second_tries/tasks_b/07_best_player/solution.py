def best_player(scores):
    best = scores[0]
    for entry in scores:
        if entry[1] >= best[1]:
            best = entry
    return best[0]
