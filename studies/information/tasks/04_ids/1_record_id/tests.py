assert record_id("customer", 42) == "CU/00042"
assert record_id("order", 1307) == "OR/01307"
