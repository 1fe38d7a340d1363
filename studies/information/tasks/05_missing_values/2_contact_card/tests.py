assert contact_card("Ann", None, "ann@lake") == "Ann|-?-|ann@lake"
assert contact_card("Bo", "555", None) == "Bo|555|-?-"
