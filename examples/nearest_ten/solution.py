def nearest_ten(number):
    return (number + 5) // 10 * 10
