assert basket_total([99]) == "0_99 cr"
assert basket_total([500, 500, 500]) == "15_00 cr"
assert basket_total([]) == "0_00 cr"
assert basket_total([12345, 1]) == "123_46 cr"
