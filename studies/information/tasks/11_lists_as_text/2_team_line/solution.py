def team_line(team, members):
    return f"{team} {len(members)}: {' / '.join(members)}"
