assert flags_line({"debug": True, "color": False, "trace": True}) == "+debug ~color +trace"
