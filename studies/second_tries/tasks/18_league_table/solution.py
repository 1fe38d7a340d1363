def league_table(results):
    points, goals = {}, {}
    for match in results:
        words = match.split(" ")
        at = next(i for i, word in enumerate(words) if ":" in word)
        home, away = " ".join(words[:at]), " ".join(words[at + 1 :])
        first, second = (int(part) for part in words[at].split(":"))
        win = 4 if abs(first - second) >= 3 else 3
        if first > second:
            gain = (win, 0)
        elif second > first:
            gain = (0, win)
        elif first == 0:
            gain = (0, 0)
        else:
            gain = (1, 1)
        for team, scored, won in ((home, first, gain[0]), (away, second, gain[1])):
            points[team] = points.get(team, 0) + won
            goals[team] = goals.get(team, 0) + scored
    names = sorted(points, key=lambda team: (-points[team], goals[team], team))
    return [[team, points[team], goals[team]] for team in names]
