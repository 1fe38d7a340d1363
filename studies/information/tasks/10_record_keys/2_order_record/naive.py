def order_record(item, count):
    return {"item": item, "count": count}
