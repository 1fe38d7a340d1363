def setting_lines(table):
    return [f"{key} := {value};" for key, value in table.items()]
