"""Numbers have the right form of their nouns."""

from mulligan.text.plain import count, count_of


def test_a_number_decides_the_form_of_its_noun() -> None:
    numbers = (count(0, "error"), count(1, "error"), count(1200, "row"), count(1, "try"), count(2, "try"))
    assert numbers == ("0 errors", "1 error", "1,200 rows", "1 try", "2 tries")
    assert (count(0.5, "second"), count(1.0, "second"), count(2, "day")) == ("0.5 seconds", "1 second", "2 days")
    assert (count_of(1, "step"), count_of(2, "step")) == ("1 step was", "2 steps were")
