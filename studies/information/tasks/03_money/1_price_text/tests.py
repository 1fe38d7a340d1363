assert price_text(1250) == "12_50 cr"
assert price_text(5) == "0_05 cr"
