assert record_id("payment", 8) == "PA/00008"
assert record_id("invoice", 99999) == "IN/99999"
assert record_id("ticket", 560) == "TI/00560"
assert record_id("booking", 12000) == "BO/12000"
