assert period_label([2024, 1, 8], [2025, 12, 19]) == "y24.m01.d08 > y25.m12.d19"
