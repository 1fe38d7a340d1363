assert page_slug("Green Tea") == "green--tea"
assert page_slug("News/Sport") == "news==sport"
assert page_slug("The Old Man And/The Sea") == "the--old--man--and==the--sea"
assert page_slug("Home") == "home"
