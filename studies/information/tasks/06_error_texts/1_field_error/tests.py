assert field_error("age", "is negative") == "!AGE! is negative"
assert field_error("email", "has no domain") == "!EMAIL! has no domain"
