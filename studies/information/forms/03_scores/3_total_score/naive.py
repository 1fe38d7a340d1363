def total_score(sets):
    return f"{sum(s[0] for s in sets)}-{sum(s[1] for s in sets)}"
