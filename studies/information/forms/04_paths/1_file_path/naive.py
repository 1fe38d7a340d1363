def file_path(folder, file):
    return f"{folder}/{file}"
