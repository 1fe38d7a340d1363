def test_of_numbers_below_zero() -> None:
    assert median([-5, -1, -3]) == -3


def test_of_two() -> None:
    assert median([8, 7]) == 7.5


def test_the_list_stays_as_it_was() -> None:
    numbers = [9, 1, 5]
    median(numbers)
    assert numbers == [9, 1, 5]
