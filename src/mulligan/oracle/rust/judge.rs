//! Runs tests, each in a process of its own, and says what became of each. Linked into every program that is judged.
//!
//! The parent forks a child for each test and never runs a line of the judged code itself. Only a child that got
//! through its test knows how to say so: a report begins with the run's secret, which is in the memory of parent and
//! child and nowhere else, so that safe code cannot reach it. No file can be read any more once a test runs, this
//! program itself with the values that its tests expect included.

use std::any::Any;
use std::fmt::{self, Debug, Write};
use std::panic;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[repr(C)]
struct PollFd {
    fd: i32,
    events: i16,
    revents: i16,
}

#[repr(C)]
struct Limit {
    soft: u64,
    hard: u64,
}

extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn pipe(fds: *mut i32) -> i32;
    fn poll(fds: *mut PollFd, count: u64, milliseconds: i32) -> i32;
    fn read(fd: i32, to: *mut u8, count: usize) -> isize;
    fn write(fd: i32, from: *const u8, count: usize) -> isize;
    fn open(path: *const u8, flags: i32) -> i32;
    fn close(fd: i32) -> i32;
    fn dup2(from: i32, to: i32) -> i32;
    fn kill(pid: i32, signal: i32) -> i32;
    fn setpgid(pid: i32, group: i32) -> i32;
    fn setrlimit(what: i32, limit: *const Limit) -> i32;
    #[cfg(target_os = "linux")]
    fn prctl(what: i32, value: usize, a: usize, b: usize, c: usize) -> i32;
    #[cfg(target_os = "linux")]
    fn syscall(number: i64, ...) -> i64;
    fn _exit(code: i32) -> !;
}

const VALUE: usize = 1000;
const NO_HANG: i32 = 1;
const KILL: i32 = 9;
#[cfg(target_os = "linux")]
const MEMORY: i32 = 9;
#[cfg(not(target_os = "linux"))]
const MEMORY: i32 = 5;

static OWN: AtomicBool = AtomicBool::new(false);
static LINE: AtomicU32 = AtomicU32::new(0);

/// The whole run: `milliseconds` for all tests together, `each` for one, `memory` in bytes for one. The secret comes as
/// a line of standard input.
pub fn run(tests: &[fn()], milliseconds: u64, each: u64, memory: u64) -> ! {
    let line = hear();
    let secret = line.as_str();
    let _ = std::env::args().next().map(std::fs::remove_file);
    let nothing = unsafe { open(b"/dev/null\0".as_ptr(), 2) };
    close_doors();
    let end = Instant::now() + Duration::from_millis(milliseconds);
    for (number, test) in tests.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        let told = if left.is_zero() {
            String::from("late")
        } else {
            one(secret, *test, left.min(Duration::from_millis(each)), memory, nothing)
        };
        say(1, &format!("{} {} {}\n", secret, number, told));
    }
    say(1, &format!("{} end\n", secret));
    unsafe { _exit(0) }
}

fn hear() -> String {
    let mut said = Vec::new();
    let mut byte = [0u8];
    while unsafe { read(0, byte.as_mut_ptr(), 1) } == 1 && byte[0] != b'\n' {
        said.push(byte[0]);
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// No other process may look into this one, and no file be opened or run: Landlock without any rule, where it is there.
fn close_doors() {
    #[cfg(target_os = "linux")]
    unsafe {
        prctl(4, 0, 0, 0, 0);
        let all: u64 = 0x1fff;
        let rules = syscall(444, &all as *const u64, 8usize, 0u32);
        if rules >= 0 {
            syscall(446, rules, 0u32);
            close(rules as i32);
        }
    }
}

fn one(secret: &str, test: fn(), limit: Duration, memory: u64, nothing: i32) -> String {
    let mut ends = [0i32; 2];
    let child = unsafe {
        if pipe(ends.as_mut_ptr()) != 0 {
            return String::from("broken pipe");
        }
        fork()
    };
    if child == 0 {
        unsafe { close(ends[0]) };
        in_child(secret, test, ends[1], memory, nothing)
    }
    unsafe { close(ends[1]) };
    if child < 0 {
        unsafe { close(ends[0]) };
        return String::from("broken fork");
    }
    let told = listen(ends[0], child, Instant::now() + limit);
    let mut status = 0;
    unsafe {
        close(ends[0]);
        if let Told::Ended(status) = told {
            kill(-child, KILL);
            return match status & 127 {
                0 => format!("exited {}", status >> 8 & 255),
                signal => format!("killed {}", signal),
            };
        }
        kill(-child, KILL);
        kill(child, KILL);
        waitpid(child, &mut status, 0);
    }
    match told {
        Told::Report(line) => match line.strip_prefix(secret).and_then(|rest| rest.strip_prefix(' ')) {
            Some(report) => String::from(report),
            None => String::from("forged"),
        },
        _ => format!("timeout {}", limit.as_millis()),
    }
}

enum Told {
    Report(String),
    Ended(i32),
    Late,
}

fn listen(fd: i32, child: i32, end: Instant) -> Told {
    let mut said = Vec::new();
    let mut open = true;
    loop {
        let mut wait = PollFd { fd: if open { fd } else { -1 }, events: 1, revents: 0 };
        if unsafe { poll(&mut wait, 1, if open { 20 } else { 2 }) } > 0 {
            let mut piece = [0u8; 4096];
            let count = unsafe { read(fd, piece.as_mut_ptr(), piece.len()) };
            if count > 0 && said.len() < 64 * VALUE {
                said.extend_from_slice(&piece[..count as usize]);
            } else {
                open = false;
            }
            if said.last() == Some(&b'\n') {
                said.pop();
                return Told::Report(String::from_utf8_lossy(&said).into_owned());
            }
            if open {
                continue;
            }
        }
        let mut status = 0;
        if unsafe { waitpid(child, &mut status, NO_HANG) } == child {
            return Told::Ended(status);
        }
        if Instant::now() >= end {
            return Told::Late;
        }
    }
}

fn in_child(secret: &str, test: fn(), fd: i32, memory: u64, nothing: i32) -> ! {
    unsafe {
        setpgid(0, 0);
        for stream in 0..3 {
            dup2(nothing, stream);
        }
        setrlimit(MEMORY, &Limit { soft: memory, hard: memory });
    }
    panic::set_hook(Box::new(|info| {
        if let Some(place) = info.location() {
            LINE.store(if place.file().ends_with("solution.rs") { place.line() } else { 0 }, Ordering::SeqCst);
        }
    }));
    let told = match panic::catch_unwind(test) {
        Ok(()) if OWN.load(Ordering::SeqCst) => String::from("own"),
        Ok(()) => String::from("passed"),
        Err(why) => why_not(why.as_ref()),
    };
    say(fd, &format!("{} {}\n", secret, told));
    unsafe { _exit(0) }
}

fn why_not(why: &(dyn Any + Send)) -> String {
    if let Some(failure) = why.downcast_ref::<Failure>() {
        return format!("{} {} {} {}", failure.kind, hex(&failure.left), hex(&failure.right), hex(&failure.message));
    }
    let message = match (why.downcast_ref::<&str>(), why.downcast_ref::<String>()) {
        (Some(text), _) => short(format_args!("{}", text)),
        (_, Some(text)) => short(format_args!("{}", text)),
        _ => String::new(),
    };
    format!("panicked {} {}", LINE.load(Ordering::SeqCst), hex(&message))
}

fn say(fd: i32, text: &str) {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let count = unsafe { write(fd, rest.as_ptr(), rest.len()) };
        if count <= 0 {
            return;
        }
        rest = &rest[count as usize..];
    }
}

fn hex(text: &str) -> String {
    let mut said = String::from("=");
    for byte in text.bytes() {
        let _ = write!(said, "{:02x}", byte);
    }
    said
}

/// The beginning of a text, so that no value fills the memory on its way here.
struct Short {
    text: String,
}

impl Write for Short {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        for char in more.chars() {
            if self.text.len() >= VALUE {
                self.text.push_str("...");
                return Err(fmt::Error);
            }
            self.text.push(char);
        }
        Ok(())
    }
}

fn short(what: fmt::Arguments) -> String {
    let mut writer = Short { text: String::new() };
    let _ = writer.write_fmt(what);
    writer.text
}

struct Failure {
    kind: &'static str,
    left: String,
    right: String,
    message: String,
}

/// Two values were compared: fails the test unless `passed`, or if only one of them is of a type of the code's own.
pub fn compared<L, R>(kind: &'static str, passed: bool, left: (&L, bool), right: (&R, bool), message: Option<fmt::Arguments>)
where
    L: Debug + ?Sized,
    R: Debug + ?Sized,
{
    let mixed = left.1 != right.1;
    if passed && !mixed {
        if !left.1 {
            OWN.store(true, Ordering::SeqCst);
        }
        return;
    }
    let kind = if passed { "mixed" } else { kind };
    let message = message.map(short).unwrap_or_default();
    panic::panic_any(Failure {
        kind,
        left: short(format_args!("{:?}", left.0)),
        right: short(format_args!("{:?}", right.0)),
        message,
    })
}

pub fn held(passed: bool, what: &str, message: Option<fmt::Arguments>) {
    if !passed {
        let message = message.map(short).unwrap_or_default();
        panic::panic_any(Failure { kind: "false", left: String::from(what), right: String::new(), message })
    }
}

#[macro_export]
macro_rules! assert_eq {
    ($left:expr, $right:expr $(,)?) => { $crate::compare!("unequal", ==, $left, $right, None) };
    ($left:expr, $right:expr, $($message:tt)+) => {
        $crate::compare!("unequal", ==, $left, $right, Some(format_args!($($message)+)))
    };
}

#[macro_export]
macro_rules! assert_ne {
    ($left:expr, $right:expr $(,)?) => { $crate::compare!("equal", !=, $left, $right, None) };
    ($left:expr, $right:expr, $($message:tt)+) => {
        $crate::compare!("equal", !=, $left, $right, Some(format_args!($($message)+)))
    };
}

#[macro_export]
macro_rules! assert {
    ($holds:expr $(,)?) => { $crate::held($holds, stringify!($holds), None) };
    ($holds:expr, $($message:tt)+) => { $crate::held($holds, stringify!($holds), Some(format_args!($($message)+))) };
}

#[macro_export]
macro_rules! compare {
    ($kind:expr, $sign:tt, $left:expr, $right:expr, $message:expr) => {
        match (&$left, &$right) {
            (left, right) => {
                #[allow(unused_imports)]
                use $crate::{Another as _, Known as _};
                let passed = *left $sign *right;
                let known = ((&$crate::Of(left)).known(), (&$crate::Of(right)).known());
                $crate::compared($kind, passed, (left, known.0), (right, known.1), $message)
            }
        }
    };
}

/// `(&Of(value)).known()`: whether the value is made of the standard library's types alone. The method of `Known` is
/// found first where it fits, that of `Another` needs one more reference.
pub struct Of<'a, T: ?Sized>(pub &'a T);

pub trait Known {
    fn known(&self) -> bool;
}

pub trait Another {
    fn known(&self) -> bool;
}

impl<T: Plain + ?Sized> Known for Of<'_, T> {
    fn known(&self) -> bool {
        true
    }
}

impl<T: ?Sized> Another for &Of<'_, T> {
    fn known(&self) -> bool {
        false
    }
}

/// Types whose equality is not the judged code's to decide.
pub trait Plain {}

macro_rules! plain {
    ($($type:ty),* $(,)?) => { $(impl Plain for $type {})* };
}

macro_rules! plain_around {
    ($($($name:ident)::+ <$($of:ident),+>),* $(,)?) => {
        $(impl<$($of: Plain),+> Plain for std::$($name)::+<$($of),+> {})*
    };
}

macro_rules! plain_tuples {
    ($first:ident $($rest:ident)*) => {
        impl<$first: Plain, $($rest: Plain),*> Plain for ($first, $($rest,)*) {}
        plain_tuples!($($rest)*);
    };
    () => {};
}

plain!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64, bool, char, str, String, ());
plain!(std::cmp::Ordering, std::time::Duration, std::num::ParseIntError, std::num::ParseFloatError, fmt::Error);
plain_around!(
    vec::Vec<T>, option::Option<T>, result::Result<T, E>, boxed::Box<T>, rc::Rc<T>, sync::Arc<T>, cell::Cell<T>,
    cell::RefCell<T>, cmp::Reverse<T>, num::Wrapping<T>, ops::Range<T>, ops::RangeInclusive<T>,
    collections::VecDeque<T>, collections::LinkedList<T>, collections::BTreeSet<T>, collections::BTreeMap<K, V>,
);
plain_tuples!(A B C D E F G H I J K L);
impl<T: Plain + ?Sized> Plain for &T {}
impl<T: Plain + ?Sized> Plain for &mut T {}
impl<T: Plain> Plain for [T] {}
impl<T: Plain, const N: usize> Plain for [T; N] {}
impl<T: Plain, S> Plain for std::collections::HashSet<T, S> {}
impl<K: Plain, V: Plain, S> Plain for std::collections::HashMap<K, V, S> {}
impl<T: ToOwned + ?Sized> Plain for std::borrow::Cow<'_, T> where T: Plain {}
