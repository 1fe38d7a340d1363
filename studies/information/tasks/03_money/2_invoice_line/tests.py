assert invoice_line("tea", 399) == "tea: 3_99 cr"
assert invoice_line("lamp", 12008) == "lamp: 120_08 cr"
