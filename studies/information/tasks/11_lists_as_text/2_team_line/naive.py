def team_line(team, members):
    return f"{team} {', '.join(members)}"
