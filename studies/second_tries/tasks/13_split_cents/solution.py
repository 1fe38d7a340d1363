def split_cents(total, weights):
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    amount = abs(total)
    shares = [amount * weight // whole for weight in weights]
    lost = [amount * weight % whole for weight in weights]
    order = sorted(range(len(weights)), key=lambda i: (lost[i], i), reverse=True)
    for i in order[: amount - sum(shares)]:
        shares[i] += 1
    if total < 0:
        shares = [-share for share in shares]
    return shares
