def distance_walked(moves):
    return sum(abs(move) for move in moves)
