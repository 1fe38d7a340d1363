def build_order(needs):
    jobs = {}
    for job, before in needs.items():
        jobs[job] = list(before)
        for name in before:
            if name not in needs:
                jobs[name] = []
    names = sorted(jobs, reverse=True)
    names.sort(key=len)
    done = []
    while True:
        for name in names:
            if name not in done and all(other in done for other in jobs[name]):
                done.append(name)
                break
        else:
            return done
