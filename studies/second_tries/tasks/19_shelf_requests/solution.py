def shelf_requests(size, requests):
    hits = 0
    shelf = []
    used = {}
    for request in requests:
        if request.startswith("!"):
            if request[1:] in shelf:
                shelf.remove(request[1:])
        elif request in shelf:
            hits += 1
            used[request] += 1
        elif size > 0:
            if len(shelf) == size:
                fewest = min(used[book] for book in shelf)
                victim = [book for book in shelf if used[book] == fewest][-1]
                shelf.remove(victim)
            shelf.append(request)
            used[request] = 0
    return [hits, shelf]
