def late_fees(loans):
    fees = []
    for due, returned, price in loans:
        late = returned - due
        if late <= 2:
            continue
        fee = 15 * min(late, 7) + 25 * max(late - 7, 0)
        fees.append(min(fee, (price + 1) // 2))
    total = sum(fees)
    if len(fees) >= 3:
        total -= min(fees)
    return total
