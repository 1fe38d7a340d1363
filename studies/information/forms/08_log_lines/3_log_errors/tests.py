assert log_errors(["no net"]) == ["error >> no net"]
assert log_errors(["bad key", "too late"]) == ["error >> bad key", "error >> too late"]
