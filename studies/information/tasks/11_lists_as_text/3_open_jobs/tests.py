assert open_jobs({"wash": False, "cook": True, "sweep": False}) == "2: wash / sweep"
