def pack_runs(text):
    packed = ""
    i = 0
    while i < len(text):
        end = i
        while end < len(text) and text[end].lower() == text[i].lower():
            end += 1
        length = end - i
        while length > 0:
            piece = min(length, 9)
            if piece <= 2:
                packed += text[i] * piece
            else:
                packed += text[i] + str(piece)
            length -= piece
        i = end
    return packed
