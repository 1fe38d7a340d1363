def shared_places(scores):
    started = [score for score in scores if score is not None]
    places = []
    for score in scores:
        if score is None:
            places.append(0)
        else:
            places.append(sum(1 for other in started if other >= score))
    return places
