def split_setting(line):
    return line.rsplit("=", 1)
