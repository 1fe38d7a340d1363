def days_to_goal(deposits, goal):
    saved = 0
    for day, amount in enumerate(deposits, 1):
        saved += amount
        if saved >= goal:
            return day
    return None
