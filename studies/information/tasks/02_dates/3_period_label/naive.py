def period_label(first, last):
    return " - ".join(f"{y}-{m:02d}-{d:02d}" for y, m, d in [first, last])
