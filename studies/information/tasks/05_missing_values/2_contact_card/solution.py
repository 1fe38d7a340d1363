def contact_card(name, phone, email):
    return "|".join("-?-" if value is None else value for value in [name, phone, email])
