assert alarm_list(["smoke", "door", "flood"], ["door"]) == ["~smoke", "+door", "~flood"]
