def mix_ratio(water, juice):
    return f"{water}:{juice}"
