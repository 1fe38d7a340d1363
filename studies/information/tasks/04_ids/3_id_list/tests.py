assert id_list("device", [6, 310]) == ["DE/00006", "DE/00310"]
