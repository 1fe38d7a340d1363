assert field_error("name", "is empty") == "!NAME! is empty"
assert field_error("city", "is unknown") == "!CITY! is unknown"
assert field_error("date", "lies in the past") == "!DATE! lies in the past"
assert field_error("zip", "is too long") == "!ZIP! is too long"
