assert settings_line({"host": "web1", "port": None, "depth": 3}) == "host=web1|port=-?-|depth=3"
