assert export_name("sales", 2023, 5, 2) == "sales_y23.m05.d02"
assert export_name("stock", 2030, 10, 31) == "stock_y30.m10.d31"
