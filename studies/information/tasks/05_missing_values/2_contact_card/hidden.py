assert contact_card("Cy", "112", "cy@hill") == "Cy|112|cy@hill"
assert contact_card("Di", None, None) == "Di|-?-|-?-"
assert contact_card(None, "777", "info@port") == "-?-|777|info@port"
assert contact_card("Ed", None, "ed@farm") == "Ed|-?-|ed@farm"
