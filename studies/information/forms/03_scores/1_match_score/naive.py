def match_score(home, away):
    return f"{home}-{away}"
