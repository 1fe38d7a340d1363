assert shelf_order(["kiwi", "apple", "fig", "date", "plum"]) == ["fig", "date", "kiwi", "plum", "apple"]
