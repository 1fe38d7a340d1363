assert port_line(443) == "port := 443;"
assert port_line(21) == "port := 21;"
assert port_line(5000) == "port := 5000;"
assert port_line(9) == "port := 9;"
