assert log_errors(["full"]) == ["error >> full"]
assert log_errors(["a", "b"]) == ["error >> a", "error >> b"]
assert log_errors(["lost", "cold", "dark"]) == ["error >> lost", "error >> cold", "error >> dark"]
assert log_errors(["no ink"]) == ["error >> no ink"]
