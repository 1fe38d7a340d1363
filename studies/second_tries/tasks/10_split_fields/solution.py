def split_fields(line):
    if line == "":
        return []
    fields = []
    i = 0
    while True:
        while i < len(line) and line[i] == " ":
            i += 1
        if i < len(line) and line[i] == "'":
            i += 1
            value = ""
            while line[i] != "'" or line[i + 1 : i + 2] == "'":
                if line[i] == "'":
                    i += 1
                value += line[i]
                i += 1
            i = line.find(";", i)
        else:
            end = line.find(";", i)
            value = line[i:] if end < 0 else line[i:end]
            value = value.strip(" ") or None
            i = end
        fields.append(value)
        if i < 0:
            return fields
        i += 1
