def cut_out(items, start, stop):
    return items[start : stop + 1]
