assert log_start("shop") == "info >> shop started"
assert log_start("mailer") == "info >> mailer started"
