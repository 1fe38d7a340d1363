def image_name(service, version):
    return f"{service}:{version[0]}.{version[1]}"
