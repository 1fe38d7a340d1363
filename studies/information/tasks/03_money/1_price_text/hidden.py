assert price_text(999) == "9_99 cr"
assert price_text(40) == "0_40 cr"
assert price_text(20001) == "200_01 cr"
assert price_text(700) == "7_00 cr"
