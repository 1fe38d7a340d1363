assert apply_orders({"nut": 5}, [["nut", 3], ["nut", -2]]) == {"nut": 6}
assert apply_orders({}, [["bolt", 2]]) == {"bolt": 2}
assert apply_orders({"nut": 5}, [["nut", -6]]) == {"nut": 5}
assert apply_orders({"nut": 5}, [["nut", -6], ["nut", -4]]) == {"nut": 1}
assert apply_orders({"nut": 5, "cog": 1}, [["cog", -1]]) == {"nut": 5}
assert apply_orders({"nut": 0, "cog": 1}, []) == {"cog": 1}
assert apply_orders({"cog": 1}, [["pin", -1]]) == {"cog": 1}
assert apply_orders({"cog": 2}, [["cog", -2], ["cog", 7]]) == {"cog": 7}
