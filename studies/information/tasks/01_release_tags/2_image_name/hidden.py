assert image_name("Search", [2, 9]) == "search~2.09"
assert image_name("Mail", [11, 24]) == "mail~11.24"
assert image_name("Login", [0, 5]) == "login~0.05"
assert image_name("Chat", [6, 10]) == "chat~6.10"
