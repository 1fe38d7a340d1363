assert order_record("jam", 1) == {"$kind": "order", "$item": "jam", "$count": 1}
assert order_record("oil", 250) == {"$kind": "order", "$item": "oil", "$count": 250}
assert order_record("red ink", 12) == {"$kind": "order", "$item": "red ink", "$count": 12}
assert order_record("salt", 0) == {"$kind": "order", "$item": "salt", "$count": 0}
