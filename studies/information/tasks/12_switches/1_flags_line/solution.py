def flags_line(flags):
    return " ".join(f"+{name}" if value else f"~{name}" for name, value in flags.items())
