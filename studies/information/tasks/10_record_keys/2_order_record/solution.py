def order_record(item, count):
    return {"$kind": "order", "$item": item, "$count": count}
