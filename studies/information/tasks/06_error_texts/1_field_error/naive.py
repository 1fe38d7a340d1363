def field_error(field, problem):
    return f"{field} {problem}"
