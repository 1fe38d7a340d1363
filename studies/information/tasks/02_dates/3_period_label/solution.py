def period_label(first, last):
    return " > ".join(f"y{y % 100:02d}.m{m:02d}.d{d:02d}" for y, m, d in [first, last])
