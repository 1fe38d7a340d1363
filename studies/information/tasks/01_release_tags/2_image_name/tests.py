assert image_name("Billing", [4, 2]) == "billing~4.02"
assert image_name("Web", [1, 18]) == "web~1.18"
