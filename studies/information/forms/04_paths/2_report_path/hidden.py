assert report_path("costs", 2024) == "costs::2024"
assert report_path("staff", 2010) == "staff::2010"
assert report_path("gains", 2001) == "gains::2001"
assert report_path("plans", 2030) == "plans::2030"
