assert open_jobs({"pack": False}) == "1: pack"
assert open_jobs({"read": False, "file": False, "sign": False}) == "3: read / file / sign"
assert open_jobs({"dig": True, "sow": False, "mow": True}) == "1: sow"
assert open_jobs({"test": False, "build": True, "ship": False, "tag": False}) == "3: test / ship / tag"
