def rank_names(points):
    return sorted(points, key=lambda name: (points[name], name), reverse=True)
