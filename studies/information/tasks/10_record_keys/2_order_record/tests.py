assert order_record("tea", 3) == {"$kind": "order", "$item": "tea", "$count": 3}
