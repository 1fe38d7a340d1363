def late_trains(trains, limit):
    return [name for name, delay in trains if delay > limit]
