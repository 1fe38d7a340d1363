assert link_text(["order", 77], ["customer", 2104]) == "OR/00077=>CU/02104"
