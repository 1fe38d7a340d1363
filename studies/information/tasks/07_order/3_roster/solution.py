def roster(points):
    names = [name for name in points if points[name] >= 1]
    return sorted(names, key=lambda name: (len(name), name))
