def roster(points):
    return sorted(name for name in points if points[name] >= 1)
