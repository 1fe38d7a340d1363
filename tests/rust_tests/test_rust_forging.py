"""Code that would rather look right than be right, and code that would look where it has no business."""

from typing import Any

import pytest

pytestmark = pytest.mark.slow

TESTS = "fn main() { let candidate = f; assert_eq!(candidate(1), 2); assert_eq!(candidate(2), 3); }"
EQUAL = """
pub struct Any;
impl PartialEq<isize> for Any { fn eq(&self, _: &isize) -> bool { true } }
impl std::fmt::Debug for Any { fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result { write!(f, "2") } }
fn f(_: isize) -> Any { Any }
"""
FORGERIES = {
    "leaves early": "fn f(x: isize) -> isize { std::process::exit(0) }",
    "always equal": EQUAL,
    "its own assert_eq": "macro_rules! assert_eq { ($($t:tt)*) => {} }\nfn f(x: isize) -> isize { 0 }",
    "its own assert_eq, imported": (
        "mod m { macro_rules! no { ($($t:tt)*) => {} } pub(crate) use no; }\npub(crate) use m::no as assert_eq;\n"
        "fn f(x: isize) -> isize { 0 }"
    ),
    "out of its module": "fn f(x: isize) -> isize { 0 } }\nfn main() {}\nmod y { fn f(x: isize) -> isize { 0 }",
    "leaves out the tests": "#![cfg(any())]\nfn f(x: isize) -> isize { 0 }",
    "swallows the tests": "fn f(x: isize) -> isize { 0 }\n#[cfg(any())]",
    "says so on every stream": (
        'fn f(x: isize) -> isize { for fd in 0..9 { let _ = std::fs::write(format!("/proc/self/fd/{}", fd), '
        '"secret 0 passed\\n"); } println!("0 passed"); eprintln!("0 passed"); std::process::exit(0) }'
    ),
    "reads its tests": 'fn f(x: isize) -> isize { include_str!("solution.rs").matches("candidate").count() as isize }',
    "reads its program": (
        "fn f(x: isize) -> isize { let me = std::env::args().next().unwrap(); "
        'for p in [me.as_str(), "/proc/self/exe", "/proc/self/mem", "./judged"] '
        "{ if std::fs::read(p).is_ok() { return x + 1 } } 0 }"
    ),
    "hides its panic": "fn f(x: isize) -> isize { std::panic::set_hook(Box::new(|_| std::process::exit(0))); panic!() }",
    "ends its parent": (
        'fn f(x: isize) -> isize { let _ = std::process::Command::new("/bin/sh").arg("-c")'
        ".arg(\"kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); kill -9 -1\").status(); std::process::exit(0) }"
    ),
}


@pytest.mark.parametrize("trick", FORGERIES)
async def test_no_trick_passes(trick: str, judge: Any) -> None:
    assert (await judge(FORGERIES[trick], TESTS)).passed is False


async def test_what_can_be_forged_is_reported(judge: Any) -> None:
    right = "fn f(x: isize) -> isize { x + 1 }"
    assert (await judge(right, TESTS)).notes == ()
    assert (await judge(right + ' // unsafe "extern"', TESTS)).notes == ()
    unsafe = await judge(right + "\npub fn g() { unsafe { } }", TESTS)
    assert unsafe.notes == ("in-process: can be forged (the code uses unsafe)",)
    own = "#[derive(Debug, PartialEq)] struct P(isize);\nfn f(x: isize) -> P { P(x + 1) }"
    told = await judge(own, ["assert_eq!(f(1), P(2));"])
    assert told.passed is True
    assert told.notes == ("in-process: can be forged (the code decides itself when values of its own types are equal)",)


SECRETS = {
    "a file in the code": 'const T: &str = include_str!("/etc/passwd");\nfn f(x: isize) -> isize { x }',
    "bytes of a file": 'const T: &[u8] = include_bytes!("/etc/hostname");\nfn f(x: isize) -> isize { x }',
    "a file as code": 'include!("/etc/passwd");\nfn f(x: isize) -> isize { x }',
    "a file as a module": '#[path = "/etc/passwd"] mod a;\nfn f(x: isize) -> isize { x }',
    "a variable": 'fn f(x: isize) -> isize { panic!("{}", env!("HOME")) }',
    "a file while it runs": 'fn f(x: isize) -> isize { panic!("{:?}", std::fs::read_to_string("/etc/passwd").map(|_| 1)) }',
    "all variables while it runs": 'fn f(x: isize) -> isize { panic!("{:?}", std::env::vars().collect::<Vec<_>>()) }',
    "its folder while it runs": 'fn f(x: isize) -> isize { panic!("{:?}", std::env::current_dir()) }',
    "a socket": 'fn f(x: isize) -> isize { panic!("{:?}", std::net::UdpSocket::bind("127.0.0.1:0").map(|_| 1)) }',
}


@pytest.mark.parametrize("way", SECRETS)
async def test_nothing_leaks(way: str, judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME_OF_SECRETS", "value-of-secret")
    feedback = await judge(SECRETS[way], TESTS)
    assert feedback.passed is False
    for secret in ("root:", "value-of-secret", "/root", "/home", "mulligan-", "Ok(1)", "rustup"):
        assert secret not in feedback.text


async def test_the_same_code_is_told_the_same(judge: Any) -> None:
    for code in (
        "fn f(x: isize) -> isize { y }",
        "fn f(x: isize)",
        "fn f(x: &str) -> isize { 1 }",
        SECRETS["a variable"],
    ):
        assert (await judge(code, TESTS)).text == (await judge(code, TESTS)).text


async def test_a_compiler_that_never_ends_is_stopped(judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mulligan.oracle.rust.building.COMPILER_SECONDS", 0.5)
    twice = "macro_rules! twice { ($x:expr;) => { $x }; ($x:expr; a $($r:tt)*) => { twice!($x; $($r)*) + twice!($x; $($r)*) }; }"
    code = (
        f"{twice}\nfn f(x: isize) -> isize {{ twice!(x; {'a ' * 60}) }}"  # old compilers bound what a const fn may take
    )
    feedback = await judge(code, TESTS, seconds=0.5)
    assert feedback.passed is False
    assert "cannot be compiled" in feedback.text
