assert file_path("lib", "core.py") == "lib::core.py"
assert file_path("old", "b.txt") == "old::b.txt"
assert file_path("web", "index.html") == "web::index.html"
assert file_path("tmp", "x.log") == "tmp::x.log"
