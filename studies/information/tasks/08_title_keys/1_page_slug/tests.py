assert page_slug("Blue Moon/Part One") == "blue--moon==part--one"
