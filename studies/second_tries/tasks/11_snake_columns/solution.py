def snake_columns(grid):
    width = max((len(row) for row in grid), default=0)
    result = []
    down = True
    for column in range(width - 1, -1, -1):
        cells = [row[column] for row in grid if len(row) > column]
        if not down:
            cells.reverse()
        for cell in cells:
            if cell < 0:
                break
            result.append(cell)
        down = not down
    return result
