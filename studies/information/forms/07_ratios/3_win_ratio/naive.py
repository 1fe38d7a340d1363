def win_ratio(games):
    return f"{games.count(True)}:{games.count(False)}"
