assert period_label([2021, 3, 1], [2021, 3, 31]) == "y21.m03.d01 > y21.m03.d31"
assert period_label([2009, 10, 5], [2010, 4, 9]) == "y09.m10.d05 > y10.m04.d09"
assert period_label([2033, 7, 14], [2033, 8, 2]) == "y33.m07.d14 > y33.m08.d02"
assert period_label([2028, 2, 29], [2029, 11, 30]) == "y28.m02.d29 > y29.m11.d30"
