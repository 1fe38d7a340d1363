assert user_record("Bo", 7) == {"$kind": "user", "$name": "Bo", "$age": 7}
assert user_record("Cy", 99) == {"$kind": "user", "$name": "Cy", "$age": 99}
assert user_record("Dee Dee", 0) == {"$kind": "user", "$name": "Dee Dee", "$age": 0}
assert user_record("", 41) == {"$kind": "user", "$name": "", "$age": 41}
