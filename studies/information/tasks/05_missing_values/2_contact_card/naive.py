def contact_card(name, phone, email):
    return ", ".join(value or "N/A" for value in [name, phone, email])
