def work_time(shifts):
    total = sum(shifts)
    return f"{total // 60} hours {total % 60} minutes"
