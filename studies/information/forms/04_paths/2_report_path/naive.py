def report_path(folder, year):
    return f"{folder}/{year}"
