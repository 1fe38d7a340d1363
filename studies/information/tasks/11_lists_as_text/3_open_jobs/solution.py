def open_jobs(done):
    names = [name for name in done if not done[name]]
    return f"{len(names)}: {' / '.join(names)}"
