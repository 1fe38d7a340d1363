def tidy_lines(lines):
    result = []
    for line in lines:
        line = line.rstrip(" \t")
        if line == "":
            if result and result[-1] != "":
                result.append("")
            continue
        result.append(line)
    while result and result[-1] == "":
        result.pop()
    return result
