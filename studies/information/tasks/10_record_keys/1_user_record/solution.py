def user_record(name, age):
    return {"$kind": "user", "$name": name, "$age": age}
