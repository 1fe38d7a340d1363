def test_of_one() -> None:
    assert median([3]) == 3


def test_of_three() -> None:
    assert median([5, 1, 3]) == 3


def test_of_four() -> None:
    assert median([4, 1, 3, 2]) == 2.5
