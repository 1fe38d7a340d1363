assert port_line(8080) == "port := 8080;"
assert port_line(22) == "port := 22;"
