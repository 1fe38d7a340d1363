assert link_text(["ticket", 5], ["user", 12]) == "TI/00005=>US/00012"
assert link_text(["refund", 300], ["payment", 45000]) == "RE/00300=>PA/45000"
assert link_text(["event", 1], ["place", 999]) == "EV/00001=>PL/00999"
assert link_text(["page", 81234], ["file", 60]) == "PA/81234=>FI/00060"
