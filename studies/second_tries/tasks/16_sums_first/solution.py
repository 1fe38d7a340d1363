def sums_first(text):
    text = text.replace(" ", "")
    numbers, operators = [], []
    i = 0
    while i < len(text):
        end = i + 1
        while end < len(text) and text[end].isdigit():
            end += 1
        numbers.append(int(text[i:end]))
        if end < len(text):
            operators.append(text[end])
        i = end + 1
    factors, signs = [numbers[0]], []
    for operator, number in zip(operators, numbers[1:], strict=True):
        if operator == "+":
            factors[-1] += number
        elif operator == "-":
            factors[-1] -= number
        else:
            signs.append(operator)
            factors.append(number)
    value = factors[0]
    for operator, number in zip(signs, factors[1:], strict=True):
        if operator == "*":
            value *= number
        elif number == 0:
            return None
        else:
            quotient = abs(value) // abs(number)
            value = quotient if (value < 0) == (number < 0) else -quotient
    return value
