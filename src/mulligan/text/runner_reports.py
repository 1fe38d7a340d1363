"""Reads the summaries that test runners print, and recognises the files that a test run depends on.

A process that a test ends itself has status 0 and prints no summary: design/120.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from mulligan.core.records import Json
from mulligan.text.plain import count

REPORTS = "reports"
"""The key of reports in an evaluator's evidence."""


@dataclass(frozen=True)
class Report:
    """The results in a runner's summaries.

    Attributes:
        runner: the runner's name.
        passed: the number of tests that passed, over all summaries; None if they do not say.
        failed: the number of tests that failed.
        failing: whether the last summary names failures.
        last: whether no other runner printed a later summary on the same stream.
    """

    runner: str
    passed: int | None = None
    failed: int = 0
    failing: bool = False
    last: bool = True


_RUNNERS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.MULTILINE)
    for name, pattern in {
        "pytest": r"^=* ?(?:no tests ran|\d+ [a-z]+(?: passed)?(?:, \d+ [a-z]+(?: passed)?)*) in [\d.]+s\b.*$",
        "pytest-sugar": r"^Results \([\d.]+m?s\):(?:\n +\d+ [a-z]+)+$",
        "unittest": r"^Ran \d+ tests? in [\d.]+s(?: using \d+ process(?:es)?)?\n+(?:OK|PASSED|FAILED|NO TESTS RAN).*$",
        "stestr": r"^Ran: \d+ tests? in [\d.]+ sec\.(?:\n - [A-Z][A-Za-z ]+: \d+)+$",
        "jest": r"^Tests: +\d.* total$",
        "vitest": r"^ *Tests +(?:no tests|\d.*\(\d+\))$",
        "mocha": r"^ *\d+ passing\b.*(?:\n *\d+ (?:pending|failing)\b.*)*",
        "node --test": r"^[#ℹ] tests +\d+(?:\n[#ℹ] [a-z_]+ +[\d.]+)+",
        "ava": r"^ +\d+ tests? (?:passed|failed)(?:\n +\d+ [a-z ]+)*$",
        "karma": r"^(?:[^\n:]{1,80}: )?Executed (?P<all>\d+) of (?P=all) .*(?:SUCCESS|FAILED)\b.*$",
        "bun test": r"(?:^ *\d+ (?:pass|fail|skip|todo|filtered out|expect.*)\n)+Ran \d+ tests? .*$",
        "deno test": r"^(?:ok|FAILED) \| \d+ passed\b.*$",
        "playwright": r"^ +\d+ (?:passed|failed) \([\d.]+m?s\)$",
        "go test": r"^(?:(?P<ok>ok)|(?P<bad>FAIL))[ \t]+\S+[ \t]+(?:\(cached\)|[\d.]+s|\[.*\]).*$",
        "cargo test": r"^test result: (?:ok|FAILED)\. .*$",
        "cargo nextest": r"^ *Summary \[.*?\] +\d+.* tests? run: .*$",
        "maven": r"^(?:\[\w+\] *)?Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+(?!.*Time elapsed).*$",
        "gradle": r"^BUILD (?:(?P<ok>SUCCESSFUL)|(?P<bad>FAILED)) in .*$",
        "rspec": r"^\d+ examples?, \d+ failures?\b.*$",
        "minitest": r"^\d+ (?:runs|tests), \d+ assertions, \d+ failures, \d+ errors\b.*$",
        "phpunit": r"^(?:OK \(\d+ tests?, .*\)|Tests: +\d+, Assertions: +\d+.*|No tests executed!)$",
        "pest": r"^ *Tests: +\d.*\(\d+ assertions?\)$",
        "dotnet test": r"^ *(?:(?:Passed|Failed)! +- Failed: +\d+, Passed: +\d+,.*|Test summary: total: \d+, .*)$",
        "ctest": r"^(?:\d+% tests passed, \d+ tests? failed out of \d+|No tests were found!!!)$",
        "googletest": r"^\[  PASSED  \] \d+ tests?\b.*$",
        "catch2": r"^(?:All tests passed \(.*\)|test cases: +\d+ \|.*)$",
        "mix test": r"^(?:\d+ doctests?, )?\d+ tests?, \d+ failures?\b.*$",
        "prove": r"^Result: (?:(?P<ok>PASS)|(?P<bad>FAIL)|NOTESTS)$",
        "xctest": r"^[ \t]*Executed \d+ tests?, with .*\d+ failures?\b.*$",
        "bazel": r"^Executed \d+ out of \d+ tests?: .*$",
        "pre-commit": r"\.\.\.(?:\([^()\n]*\))?(?:(?P<ok>Passed)|(?P<bad>Failed))$",
    }.items()
}
_PROGRESS = re.compile(r"^[.FEsxX]+ +\[100%\]$", re.MULTILINE)
"""The last line of `pytest -qq`, which prints no summary."""
_NODE_FILES = re.compile(r"^(not |✖ )?(?:ok \d+ - |✔ |(?<=✖ ))\S+\.[cm]?[jt]sx?(?: \([\d.]+ms\))?$", re.MULTILINE)
_NOT_QUIET = {"maven": re.compile(r"\bBUILD (SUCCESS|FAILURE)\b"), "gradle": re.compile(r"^> Task :", re.MULTILINE)}
"""Output of runs that are not quiet. Quiet runs of these runners report only failures."""
_PREFIX = re.compile(
    r"^(?:\[[\w:@/.-]+\] |(?!ok |FAILED )[\w.-]+ +\| |[\w@/.-]+:[\w-]+: |\d{4}-\d\d-\d\d(?:[T ][\d:.,Z+-]+)? )",
    re.MULTILINE,
)
"""The prefixes of lines from compose, turbo, concurrently and logs."""
_ESCAPES = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")

_END = 200_000
"""The number of characters at the end of a stream that are searched for summaries."""

_COUNTS = re.compile(r"(\d+) (?:tests? (?=failed|passed))?([a-z]+)|\b([a-z]+)[:=]? *(\d+)\b(?! ?[a-z%])")
_PASSED = {"passed", "passing", "pass", "succeeded", "xpassed"}
_FAILED = {"failed", "failing", "fail", "failure", "failures", "error", "errors"}
_SKIPPED = {"skipped", "skip", "skips", "pending", "ignored", "todo", "xfailed", "deselected"}
_TOTAL = {"test", "tests", "run", "runs", "total", "example", "examples", "of"}


def reports_of(*streams: str) -> tuple[Report, ...]:
    """Returns the reports of the known runners on these streams; on each stream, in the order of the last summaries."""
    return tuple(report for text in streams for report in _reports(text))


def _reports(text: str) -> list[Report]:
    text = _ESCAPES.sub("", text[-_END:]).replace("\r\n", "\n").replace("\r", "\n")
    text = _PREFIX.sub("", text)
    ends: dict[Report, int] = {}
    for name, pattern in _RUNNERS.items():
        summaries = list(pattern.finditer(text))
        if not summaries and name == "pytest":
            summaries = list(_PROGRESS.finditer(text))
            if summaries:
                ends[Report(name, failing=bool(re.search("[FE]", summaries[-1][0])))] = summaries[-1].end()
        elif summaries and (name not in _NOT_QUIET or _NOT_QUIET[name].search(text)):
            counts = [_counts(summary) for summary in summaries]
            passed = [passed for passed, _ in counts if passed is not None]
            failed = sum(failed for _, failed in counts)
            failing = counts[-1][1] > 0
            if name == "node --test" and passed:  # a file that ends before its tests is itself a test that passed
                marks = _NODE_FILES.findall(text)
                passed, failed = [max(sum(passed) - marks.count(""), 0)], max(failed - len(marks) + marks.count(""), 0)
            ends[Report(name, sum(passed) if passed else None, failed, failing)] = summaries[-1].end()
    ordered = sorted(ends, key=lambda report: ends[report])
    return [replace(report, last=report is ordered[-1]) for report in ordered]


def _counts(summary: re.Match[str]) -> tuple[int | None, int]:
    """Returns the numbers of tests that passed (None if unknown) and failed in one summary."""
    marks = summary.groupdict()
    if "ok" in marks:
        return (0 if "[no test" in summary[0] else int(bool(marks["ok"]))), int(bool(marks["bad"]))
    text = re.sub(r"\bno tests\b", "0 tests", summary[0].lower()).replace("expected failures", "xfailed")
    counts: dict[str, int] = {}
    for n, word, other, m in _COUNTS.findall(text):
        counts[word or other] = counts.get(word or other, 0) + int(n or m)
    passed, failed, skipped = (sum(counts.get(word, 0) for word in words) for words in (_PASSED, _FAILED, _SKIPPED))
    if _PASSED.isdisjoint(counts):
        totals = [counts[word] for word in _TOTAL if word in counts]
        return max(max(totals) - failed - skipped, 0) if totals else (0 if failed or skipped else None), failed
    return passed, failed


def share(reports: Sequence[Report]) -> float | None:
    """Returns the share of the tests that passed, by the last summary of the first stream that has one."""
    last = (one for one in reports if one.last and one.passed is not None and one.passed + one.failed)
    return next((one.passed / (one.passed + one.failed) for one in last if one.passed is not None), None)


def objection(before: Sequence[Report], now: Sequence[Report], argv: Sequence[str]) -> str:
    """Returns why status 0 does not mean that the tests passed, by comparison with an earlier run; "" if it does."""
    only_on_failure = any(_ON_FAILURE.search(part) for part in argv)
    names, earlier_names = {one.runner for one in now}, {one.runner for one in before}
    missing = [one.runner for one in before if one.last and one.runner not in names]
    if missing and names <= earlier_names and not only_on_failure:
        return f"{missing[0]} printed no summary of its tests, so they may not have finished"
    if failing := [one for one in now if one.last and one.failing]:
        return f"{failing[0].runner} reports failures"
    if any(one.passed or one.failed for one in before) and now and all(one.passed == 0 for one in now):
        return f"by the summary of {now[-1].runner}, no test passed"
    return ""


def fewer(before: Sequence[Report], now: Sequence[Report]) -> str:
    """Returns a note if a runner ran fewer tests than before, or ""."""
    counts = {one.runner: one.passed + one.failed for one in now if one.passed is not None}
    for one in before:
        if one.runner in counts and counts[one.runner] < (earlier := (one.passed or 0) + one.failed):
            return f"{one.runner} reports {count(counts[one.runner], 'test')}, and reported {earlier} before"
    return ""


def reports_in(evidence: Json) -> list[Report]:
    """Returns the reports in a judge's evidence."""
    rows: Any = cast(Mapping[str, Any], evidence).get(REPORTS, ()) if isinstance(evidence, Mapping) else ()
    return [Report(**row) for row in rows]


# --- by the command line ------------------------------------------------------------------------------------------

_LAUNCHERS = re.compile(
    r"^(?:\w+=\S* +|(?:\S*/)?(?:env|time|nice|exec|nohup|timeout(?: -\S+)* \S+|xvfb-run|npx|bunx|"
    r"(?:uv|poetry|pdm|hatch|pipenv|rye|coverage|conda) run|(?:pnpm|yarn|bundle|npm) exec)(?: --)? +"
    r"|(?:\S*/)?(?:python|pypy)[\d.]*(?: -[A-LN-Za-ln-z]\S*)* -m +|-\S+ +)"
)
_DIRECT: Mapping[str, re.Pattern[str]] = {
    "pytest": re.compile(r"(?:\S*/)?(?:pytest|py\.test)(?= |$)"),
    "unittest": re.compile(r"unittest(?= |$)"),
    "jest": re.compile(r"(?:\S*/)?jest(?= |$)"),
    "vitest": re.compile(r"(?:\S*/)?vitest (?:run|--run)(?= |$)"),
    "mocha": re.compile(r"(?:\S*/)?mocha(?= |$)"),
    "cargo test": re.compile(r"(?:\S*/)?cargo (?:\+\S+ )?(?:test|t)(?= |$)"),
    "go test": re.compile(r"(?:\S*/)?go test(?= |$)"),
    "rspec": re.compile(r"(?:\S*/)?rspec(?= |$)"),
    "phpunit": re.compile(r"(?:\S*/)?phpunit(?= |$)"),
}
_ON_FAILURE = re.compile(r"\bchronic\b|>.*\|\|", re.DOTALL)
"""Commands that show the output of another command only if it fails."""
_SILENT = re.compile(
    r" (?:-\w*qq\w*|--quiet|--silent|-\w*h|--help|-V|--version|--co(?:llect-only)?|--no-run|--list\w*|-json|--json"
    r"|--reporters?|-R|-f|--format|-p no:\S+|--fixtures|--(?:no-)?(?:output|results)|--setup-\w+|-c|-exec|-list"
    r"|--log-file\S*|--output-?[fF]ile\S*|--markers)(?:=| |$)|(?: -q\b.*){2}"
)


def runner_of(argv: Sequence[str]) -> str:
    """Returns the known runner that the command starts, or "" if it is unknown or may print no summary."""
    line = " ".join(argv)
    if (
        len(argv) > 2
        and os.path.basename(argv[0]) in ("sh", "bash", "dash", "zsh")
        and re.fullmatch("-[a-z]*c", argv[1])
    ):
        line = re.split(r"&&|;|\n", argv[2].strip().rstrip(";"))[-1].strip()
        if re.search(r"[|<>&`$]", line):
            return ""
    while launcher := _LAUNCHERS.match(line):
        line = line[launcher.end() :]
    return next((name for name, runner in _DIRECT.items() if runner.match(line) and not _SILENT.search(line)), "")


# --- files --------------------------------------------------------------------------------------------------------

_TESTS = re.compile(r"(^|/)(tests?|specs?|__tests__)/|(^|/)(test_|conftest)[^/]*$|[._-](test|spec)s?\.[^/.]+$")
_SETTINGS = re.compile(
    r"""(?:^|/)(?:
    \.env(?:rc|\.\w+)?|\.gitattributes
    |\.?pytest\.(?:ini|toml)|pyproject\.toml|tox\.(?:ini|toml)|setup\.cfg|noxfile\.py|\.coveragerc|[^/]+\.pth|entry_points\.txt
    |(?:sitecustomize|usercustomize|pytest|_pytest|pluggy|unittest)(?:\.py|/.*)
    |package\.json|\.npmrc|\.mocharc[^/]*|bunfig\.toml|deno\.jsonc?
    |(?:jest|vitest|vite|karma|playwright|cypress|ava|babel)\.(?:config|conf|setup|workspace)\.[^/]+|setupTests\.[^/]+
    |(?:GNU)?[Mm]akefile|[^/]+\.mk|\.?justfile|Taskfile\.ya?ml|Rakefile|\.pre-commit-config\.yaml
    |Cargo\.toml|\.cargo/config(?:\.toml)?|\.config/nextest\.toml
    |pom\.xml|(?:build|settings)\.gradle(?:\.kts)?|gradle\.properties|\.mvn/.*
    |\.rspec|phpunit\.xml(?:\.dist)?|Pest\.php|CMakeLists\.txt|CTest[^/]*\.cmake|[^/]+\.runsettings
    |Directory\.Build\.(?:props|targets)|\.bazelrc|mix\.exs|\.proverc
    )$""",
    re.VERBOSE,
)
_HEADER = re.compile(r"^diff --git (?:a/(.+) b/\1|a/(.+) b/(.+))$", re.MULTILINE)


def changed_test_files(diff: str, argv: Sequence[str]) -> list[str]:
    """Returns the files of a unified diff, in its order, that a test run depends on.

    These are tests, settings of the usual runners, and what the command names: a script, a module after `-m`.
    """
    return test_files(dict.fromkeys(path for match in _HEADER.findall(diff) for path in match if path), argv)


def test_files(paths: Iterable[str], argv: Sequence[str]) -> list[str]:
    """Returns the files among these that a test run depends on."""
    named = _named(argv)
    return [path for path in paths if _TESTS.search(path) or _SETTINGS.search(path) or _names(named, path)]


def settings_files(names: Iterable[str]) -> list[str]:
    """Returns the files of a folder that are settings of a test runner, or run with every test below the folder."""
    return [name for name in names if _SETTINGS.search(name) or name == "conftest.py"]


def words_in(argv: Iterable[str]) -> list[str]:
    """Returns the words of a command line, and the words of the shell commands in it."""
    words: list[str] = []
    for part in argv:
        words.append(part)
        if re.search(r"[\s;&|]", part):
            try:
                words += shlex.shlex(part, posix=True, punctuation_chars=True)
            except ValueError:
                words += part.split()
    return words


def _named(argv: Iterable[str]) -> set[str]:
    """Returns the paths that a command line may name."""
    paths: set[str] = set()
    for word in words_in(argv):
        path = os.path.normpath(word.rpartition("=")[2].partition("::")[0])
        paths.add(path)
        if re.fullmatch(r"[A-Za-z_]\w*(?:\.\w+)*", word):
            module = word.replace(".", "/")
            paths |= {f"{module}.py", f"{module}/__main__.py", f"{module}/__init__.py"}
    return paths


def _names(named: set[str], path: str) -> bool:
    """Whether one of these is the path, relative to one of its parent folders: a check may start in any of them."""
    parts = path.split("/")
    return any("/".join(parts[n:]) in named for n in range(len(parts)))
