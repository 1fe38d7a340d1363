def test_of_numbers_below_zero() -> None:
    assert median([-5, -1, -3]) == -3


def test_of_equal_numbers() -> None:
    assert median([2, 2, 2, 2]) == 2


def test_the_list_stays_as_it_was() -> None:
    numbers = [9, 1, 5]
    median(numbers)
    assert numbers == [9, 1, 5]
