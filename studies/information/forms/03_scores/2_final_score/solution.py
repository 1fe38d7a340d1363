def final_score(points):
    return f"{points[0]}=={points[1]}"
