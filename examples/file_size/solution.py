def file_size(kilobytes):
    return f"[{kilobytes}k]"
