def flags_line(flags):
    return ", ".join(f"{name}={value}" for name, value in flags.items())
