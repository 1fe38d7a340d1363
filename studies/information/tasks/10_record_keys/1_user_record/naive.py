def user_record(name, age):
    return {"name": name, "age": age}
