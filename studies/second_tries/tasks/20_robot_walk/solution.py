def robot_walk(grid, moves):
    for r, row in enumerate(grid):
        if "S" in row:
            start = (r, row.index("S"))
    r, c = start
    facing = 0
    steps = [(-1, 0), (0, 1), (1, 0), (0, -1)]
    i = 0
    while i < len(moves):
        command = moves[i]
        i += 1
        if command in "LBR":
            facing = (facing + {"R": 1, "B": 2, "L": 3}[command]) % 4
            continue
        digits = ""
        while i < len(moves) and moves[i].isdigit():
            digits += moves[i]
            i += 1
        for _ in range(int(digits) if digits else 1):
            nr = (r + steps[facing][0]) % len(grid)
            nc = (c + steps[facing][1]) % len(grid[0])
            if grid[nr][nc] == "#":
                break
            if grid[nr][nc] == "x":
                r, c = start
                break
            r, c = nr, nc
    return [r, c, "NESW"[facing]]
