def port_line(port):
    return f"port := {port};"
