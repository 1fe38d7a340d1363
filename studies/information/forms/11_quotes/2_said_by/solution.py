def said_by(name):
    return f"^I am {name}^"
