def open_jobs(done):
    return ", ".join(name for name in done if not done[name])
