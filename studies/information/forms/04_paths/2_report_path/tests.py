assert report_path("taxes", 2021) == "taxes::2021"
assert report_path("sales", 1999) == "sales::1999"
