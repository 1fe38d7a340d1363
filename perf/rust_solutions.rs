// Written for Mulligan, to see real passes: no part of any data set. Each stands after the name of its item.

//// HumanEval_24_largest_divisor
fn largest_divisor(n: isize) -> isize {
    (1..n).rev().find(|d| n % d == 0).unwrap_or(1)
}

//// HumanEval_47_median
fn median(l: Vec<isize>) -> f64 {
    let mut sorted = l;
    sorted.sort_unstable();
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[half] as f64
    } else {
        (sorted[half - 1] + sorted[half]) as f64 / 2.0
    }
}

//// HumanEval_35_max_element
fn max_element(l: Vec<isize>) -> isize {
    l.into_iter().max().unwrap()
}

//// HumanEval_41_car_race_collision
fn car_race_collision(n: isize) -> isize {
    n * n
}

//// HumanEval_31_is_prime
fn is_prime(n: isize) -> bool {
    n > 1 && (2..).take_while(|d| d * d <= n).all(|d| n % d != 0)
}

//// HumanEval_11_string_xor
fn string_xor(a: String, b: String) -> String {
    a.chars().zip(b.chars()).map(|(x, y)| if x == y { '0' } else { '1' }).collect()
}

//// HumanEval_60_sum_to_n
fn sum_to_n(n: isize) -> isize {
    n * (n + 1) / 2
}

//// HumanEval_23_strlen
fn strlen(string: String) -> isize {
    string.chars().count() as isize
}

//// HumanEval_55_fib
fn fib(n: isize) -> isize {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

//// HumanEval_51_remove_vowels
fn remove_vowels(text: String) -> String {
    text.chars().filter(|c| !"aeiouAEIOU".contains(*c)).collect()
}

//// HumanEval_30_get_positive
fn get_positive(l: Vec<isize>) -> Vec<isize> {
    l.into_iter().filter(|x| *x > 0).collect()
}

//// HumanEval_15_string_sequence
fn string_sequence(n: isize) -> String {
    (0..=n).map(|i| i.to_string()).collect::<Vec<_>>().join(" ")
}

//// HumanEval_112_reverse_delete
fn reverse_delete(s: String, c: String) -> (String, bool) {
    let kept: String = s.chars().filter(|x| !c.contains(*x)).collect();
    let same = kept.chars().eq(kept.chars().rev());
    (kept, same)
}

//// HumanEval_27_flip_case
fn flip_case(string: String) -> String {
    let flip = |c: char| if c.is_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() };
    string.chars().map(flip).collect()
}

//// HumanEval_29_filter_by_prefix
fn filter_by_prefix(strings: Vec<String>, prefix: String) -> Vec<String> {
    strings.into_iter().filter(|s| s.starts_with(&prefix)).collect()
}

//// HumanEval_5_intersperse
fn intersperse(numbers: Vec<isize>, delimeter: isize) -> Vec<isize> {
    let mut all: Vec<isize> = numbers.into_iter().flat_map(|n| [n, delimeter]).collect();
    all.pop();
    all
}

//// HumanEval_157_right_angle_triangle
fn right_angle_triangle(a: isize, b: isize, c: isize) -> bool {
    let mut sides = [a * a, b * b, c * c];
    sides.sort();
    sides[0] + sides[1] == sides[2]
}

//// HumanEval_53_add
fn add(x: isize, y: isize) -> isize {
    x + y
}

//// HumanEval_45_triangle_area
fn triangle_area(a: isize, h: isize) -> f64 {
    a as f64 * h as f64 / 2.0
}

//// HumanEval_13_greatest_common_divisor
fn greatest_common_divisor(a: isize, b: isize) -> isize {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

//// HumanEval_48_is_palindrome
fn is_palindrome(text: String) -> bool {
    text.chars().eq(text.chars().rev())
}

//// HumanEval_61_correct_bracketing
fn correct_bracketing(brackets: String) -> bool {
    let mut depth = 0;
    for c in brackets.chars() {
        depth += if c == '(' { 1 } else { -1 };
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

//// HumanEval_128_prod_signs
fn prod_signs(arr: Vec<isize>) -> Option<isize> {
    if arr.is_empty() {
        return None;
    }
    let sign: isize = arr.iter().map(|x| x.signum()).product();
    Some(sign * arr.iter().map(|x| x.abs()).sum::<isize>())
}

//// HumanEval_4_mean_absolute_deviation
fn mean_absolute_deviation(numbers: Vec<f64>) -> f64 {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    numbers.iter().map(|x| (x - mean).abs()).sum::<f64>() / count
}

//// HumanEval_20_find_closest_elements
fn find_closest_elements(numbers: Vec<f64>) -> (f64, f64) {
    let mut sorted = numbers;
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let gap = |pair: &&[f64]| pair[1] - pair[0];
    let best = sorted.windows(2).min_by(|a, b| gap(a).partial_cmp(&gap(b)).unwrap()).unwrap();
    (best[0], best[1])
}

//// HumanEval_111_histogram
fn histogram(test: String) -> HashMap<String, isize> {
    let mut counts = HashMap::new();
    for letter in test.split_whitespace() {
        *counts.entry(letter.to_string()).or_insert(0) += 1;
    }
    let most = counts.values().copied().max().unwrap_or(0);
    counts.retain(|_, count| *count == most);
    counts
}

//// HumanEval_12_longest
fn longest(strings: Vec<String>) -> Option<String> {
    let most = strings.iter().map(|s| s.len()).max()?;
    strings.into_iter().find(|s| s.len() == most)
}

//// HumanEval_8_sum_product
fn sum_product(numbers: Vec<isize>) -> (isize, isize) {
    (numbers.iter().sum(), numbers.iter().product())
}

//// HumanEval_87_get_row
fn get_row(lst: Vec<Vec<isize>>, x: isize) -> Vec<(isize, isize)> {
    let mut found = Vec::new();
    for (row, values) in lst.iter().enumerate() {
        for (column, value) in values.iter().enumerate().rev() {
            if *value == x {
                found.push((row as isize, column as isize));
            }
        }
    }
    found
}

//// HumanEval_156_int_to_mini_roman
fn int_to_mini_roman(number: isize) -> String {
    let parts = [
        (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
        (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
    ];
    let mut left = number;
    let mut said = String::new();
    for (value, letters) in parts {
        while left >= value {
            said.push_str(letters);
            left -= value;
        }
    }
    said
}
