assert tag_line(["security", "cli", "wontfix"]) == "cli wontfix security"
assert tag_line(["zoo", "abcd", "ant"]) == "ant zoo abcd"
assert tag_line(["queue", "cache", "db"]) == "db cache queue"
assert tag_line(["mobile", "web"]) == "web mobile"
