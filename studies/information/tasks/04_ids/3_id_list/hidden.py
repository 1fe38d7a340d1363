assert id_list("server", [1]) == ["SE/00001"]
assert id_list("account", [20, 3, 11111]) == ["AC/00020", "AC/00003", "AC/11111"]
assert id_list("room", [101, 102]) == ["RO/00101", "RO/00102"]
assert id_list("guest", []) == []
