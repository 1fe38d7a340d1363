assert user_record("Ann", 30) == {"$kind": "user", "$name": "Ann", "$age": 30}
