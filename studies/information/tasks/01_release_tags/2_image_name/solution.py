def image_name(service, version):
    major, minor = version
    return f"{service.lower()}~{major}.{minor:02d}"
