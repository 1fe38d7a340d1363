def work_time(shifts):
    total = sum(shifts)
    return f"{total // 60}h+{total % 60:02d}"
