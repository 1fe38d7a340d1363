assert team_line("Red", ["Ann", "Bo"]) == "Red 2: Ann / Bo"
