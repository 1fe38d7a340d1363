assert invoice_line("jam", 450) == "jam: 4_50 cr"
assert invoice_line("nail", 3) == "nail: 0_03 cr"
assert invoice_line("chair", 8900) == "chair: 89_00 cr"
assert invoice_line("stamp", 85) == "stamp: 0_85 cr"
