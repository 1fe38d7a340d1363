assert missing_keys({"name": "Ann"}, ["name", "phone", "city"]) == ["!PHONE! missing", "!CITY! missing"]
