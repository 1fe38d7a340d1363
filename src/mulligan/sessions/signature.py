"""Recognises an error by the output of a command, whatever its paths, numbers and hashes are.

Rules choose the lines that say what the error is about, such as its kind, the missing module or the failing test, and
remove what differs from run to run and from machine to machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from mulligan.core.late_pattern import LatePattern
from mulligan.sessions.plain_command import plain

try:
    from _blake2 import blake2b  # hashlib loads OpenSSL, which takes longer than all else here
except ImportError:
    from hashlib import blake2b

MAX_LINES = 6
"""Lines that a signature has at most."""
_MAX_NORMALISED = 240
_MAX_LINE = 4 * _MAX_NORMALISED
"""Characters of a line that are read. Patterns must be quick, as no deadline can stop them."""
_HEAD, _TAIL = 20_000, 60_000
"""Characters at the beginning and at the end of an output that are read."""


_DIGITS = "0123456789"

_ESCAPES = LatePattern(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]|[\x00-\x08\x0b\x0c\x0e-\x1f]",
    [*map(chr, (*range(9), 11, 12, *range(14, 32)))],
)

_NOISE = LatePattern(
    r"""
    ^(?:
      (?:npm\s+(?:err!|error)\s+)?(?:a\ complete\ log|.*_logs/.*debug) | npm\s+(?:err!|error)\s*$
    | .*\bwarnings?\b[\s:\[] (?!.*\berror) | .*:\ (?:note|help|warning|info):
    | (?:note|help|warning|hint|info)\b[:\[]
    | (?:error:\ )?aborting\ due\ to | found\ \d+\ errors? | .*\ previous\ errors?
    | for\ more\ information | to\ get\ more | try\ [`'\-] | run\ with | see\ .*\bdoc
    | make(?:\[\d+\])?:\ \*\*\*\ \[.*\]\ error\ \d+
    | npm\ (?:err!|error)\s+(?:\d+\s*)?(?:$|to\ see|npm\ run|note\ that|tarball|this\ is)
    | (?:>\ task\ .*|failure:\ build|build)\ failed\b
    | =.*=$ | ___.*___$ | ---+$ | \d+\ (?:passed|failed)
    )""",
    (
        *("complete log", "_logs/", "npm", "warning", "note", "help", "hint", "info", "aborting due", "found "),
        *("previous error", "for more info", "to get more", "try ", "run with", "see ", "make", "failed", "=", "___"),
        *("---", "passed"),
    ),
    re.VERBOSE | re.IGNORECASE,
)

_KIND = r"(?:[A-Za-z_][\w.$]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Failure|Fault)"
_STRONG = rf"""(?x)
    ^(?:FAILED|ERROR)\s+\S+::\S+                                   # pytest
    | ^\s*(?:E\s+)?{_KIND}(?:\s\[\w+\])?(?:$|:)                    # an exception
    | \b(?:error|fatal|ERROR|Error)(?:\s+|:\s*)?[\[(]?[A-Z]{{1,6}}\d{{2,6}}\b          # a code: TS2304, E0425, CS0103
    | ^test\ \S.*\ FAILED$ | ^thread\ '.+'\ panicked\ at      # cargo test
    | ^---\ FAIL:\ \S+ | ^panic:\ | ^\s*✕\s | ^\s*●\s.*›
    """
_PLAIN = r"""(?xi)
    (?:^|[\s:(\[*])(?:fatal|error|err!|failure|panic|critical|e)(?:\s\w+)?[:\]!]\s   # error: ..., fatal error: ...
    | ^\S+:\d+(?::\d+)?(?::|\ -)\s | ^\S+\(\d+,\d+\):\s                          # a place, and what is wrong there
    | ^npm\ (?:err!|error)\s+\S | \bpermission\ denied\b | \brepository\ not\ found\b
    | \bE(?:CONNREFUSED|ADDRINUSE)\b
    | ^\s*symbol:\s | undefined\ reference | \*\*\*\ \S | ^error\b | ^curl:\ \(\d+\)
    """
_SOFT = r"""(?xi)
    \b(?:not\ found|no\ such|cannot|can't|could\ not|couldn't|unable\ to|denied|refused|failed|failure|invalid|
    missing|unknown|undefined|unexpected|not\ recognized|not\ permitted|does\ not\ exist|already\ exists|timed\ out|
    unsupported|conflict|requires|no\ module|mismatch|expected|unrecognized|rejected|killed|exceeded|in\ use|error)\b"""

_SUMMARY = LatePattern(
    r"""
    script\ .*\ exited\ with | command\ failed\ with\ exit\ code | exited?\ (?:with\ )?(?:code|status)\ \d+\W*$
    | item\ \d+\ failed | \ball\ fail | some\ errors\ were | ^\W*(?:error|fail(?:ed|ure)?)\W*$ | elifecycle | ^fail\s
    | (?<!port\ )(?<![:.\d])\b\d+\ (?:errors?|issues?|problems?|failures?|failed|tests?)\b
    | failed\ to\ push\ some\ refs | ^[$>]\s
    | \bfailed\ to\ run\ custom\ build
    | \blifecycle\ script\b | ^\W*build\ failed\b | script\ failed\ \(code | \b(?:error\ during|failed\ with)\ \w+:$
    | execution\ failed\ for\ task
    | the\ dependencies\ of\ task | linker\ command\ failed | \blinking\ with\ \S+\ failed
    | \bld\ returned\b | validation\ errors?\ for\ \S+$
    | ^npm\ error\ (?:code|errno|syscall|path|cwd)\b | \.{5,}\s*\(?(?:failed|passed|skipped)
    | ^(?:failed|error):\ (?:git|gh|npm|pnpm|yarn|bun|cargo|go|make|docker|pip|uv|gradle|mvn|kubectl)(?:\ [\w:-]+)?$
    | failed\ to\ (?:compile|run|execute)\W*$ | process\ completed\ with | task\ .*\ failed
    | \bcd:\ .*no\ such\ file
    """,
    (
        *("exit", "item ", "fail", "some errors were", "error", "elifecycle", "issue", "problem", "test", "$", ">"),
        *("execution", "lifecycle script", "dependencies of", "linker command", "linking with", "ld returned"),
        *("passed", "skipped", "process completed", "no such file"),
    ),
    re.VERBOSE | re.IGNORECASE,
)
"""Lines that count errors or say that there are some, but not which."""
_PASSED = LatePattern(
    r"^\s*(?:\(pass\)|✓|✔|√|ok\s+\d|PASS(?:ED)?\b|---\ PASS|test\ .*\.\.\.\ ok$|\[\s+OK\s+\])|\bPASSED\b",
    ("(pass)", "✓", "✔", "√", "ok", "PASS", "OK"),
)
"""Lines of tests that passed, which may be about errors."""
_NODE = LatePattern(r"^(?:FAILED|ERROR)\s+\S+(?:::\S+)?(?:\[[^\]]*\])?\s+-\s+(?=\S)", ("FAILED", "ERROR"))
"""The name of the test before the cause, in a summary of pytest."""
_ONLY_PLACE = LatePattern(
    r"^(?:FAILED|ERROR)\s+\S+\s*$|^\S+::\S+\s(?:FAILED|ERROR)\b|^at\s\S.*[:)]\d*\)?$"
    r"|^---\ FAIL|^test\ \S.*\ FAILED$|^\s*(?:✕|●|\(fail\))",
    ("FAIL", "ERROR", "at", "✕", "●", "(fail)"),
)
_CAUSE = r"""(?x)
      ^(?:\S*/)?(?:ba|da|z|k)?sh:\ .*\bnot\ found\s*$ | ^\S+:\ command\ not\ found | \bvalidation\ errors?\ for\ \S+\ \S
    | ^(?:\w+(?:::|\\))+\w+(?:Error|Exception|NotFound|Invalid)(?::|$)
    | ^E\s+(?:[\w.]+\.)?[A-Z]\w+:\ \S | ^✖\s+(?!found)\S
    """
"""Names a cause, in addition to `_STRONG`."""
_NO_MATCHES = "no matches found"
_NO_GLOB = rf"^zsh:(?:\d+:)? {_NO_MATCHES}: "
"""The shell did not run the command, so all other output is a consequence."""
_BEFORE_CAUSE = re.compile(
    r"^(?:.*?\b(?:\w*(?:[Ee]rror|Exception)|FAILED|ERROR|fatal)(?:\s\[[\w.]+\])?(?::\s+|(?<=\])\s+)"
    r"|(?:\w+::)+\w+:\s+|(?:package|imports)\s+)+"
)
"""What is before the cause: who says it, and the kind of error."""
_SAID_BY_SHELLS = "not found|no such file or directory|permission denied"
_SHELL = (
    rf"(?i)(?:\w*sh: |\(eval\):)?(?:(?:line )?[#\d]+: )?(?:(\S+): (?:command )?({_SAID_BY_SHELLS})"
    rf"|(?:command )?({_SAID_BY_SHELLS}): (\S+))$"
)
"""A message of a shell. Each shell has its own form of it."""
_THREAD = LatePattern(r'^Exception in thread "[^"]*" ', ("Exception in thread",))
_BEHIND = LatePattern(
    r"(?: in \S+)? \((?:<url [^)]*|[\w:]+Error)\)$| in \S+ on line #$|^\S+: (?=No module named \S+$)",
    ("<url", "Error)", " on line #", "No module named"),
)
"""What only some tools put around the cause."""
_IMPORTER = LatePattern(
    r"\s(?:from|imported by) '[\w.-]+\.(?:[cm]?[jt]sx?|py|vue|svelte)'[.]?$", ("from '", "imported by '")
)
_BOX = LatePattern(r"^\s*[│┃╷╵⨯✗✘×]\s?", "│┃╷╵⨯✗✘×")
_AT_PLACE = re.compile(r"^\S+?[:(]\d+(?:[:,]\d+)?\)?:?\s")
_RULE_CODE = LatePattern(
    r"\b(?:MD\d{3}|TS\d{4,5}|SC\d{4}|[EWFBCN]\d{3,4}|RUF\d{3}|GH\d{3}|[A-Z]{2,8}\d{4}|ERESOLVE"
    r"|ERR_[A-Z0-9_]+(?<!_NOT_FOUND)(?<!_NO_SCRIPT))\b",
    (*_DIGITS, "ERESOLVE", "ERR_"),
)
"""Codes of rules, which mean the same in every file."""
_GENERIC = frozenset(
    re.findall(
        r"\S+",
        """
        error errors failed failure fail fatal the and for with not found cannot could find was were has
        have exit exited code status command line file test tests run running failing some any all invalid
        unexpected expected true false none null assert assertion assertionerror exception traceback most
        recent call last undefined object value type unknown build process task script bash see above
        details log output completed expect received but got want actual equal equals match contain
        assertionfailederror comparisonfailure
        """,
    )
)
_MEANING = re.compile(r"[A-Za-z_][\w.-]{2,}")
MAX_CAUSES, MAX_TELLING = 4, 8
"""Causes of an error, and lines that say something about it, at most."""

_SOFTER = r"""(?xi)
    \b(?:doesn't|isn't|aren't|wasn't|did(?:n't|\s+not)|not\s+(?:running|set|installed|allowed|(?:\w+\s)?supported)|excludes?|incompatible
    |ignored|violations?|inconsistent|dubious|exhausted|twice|required|requires|no\s[\w\ -]{2,40}\shas\s+been)\b"""

_USER = LatePattern(
    r"""\b(user|username|login|owner)(\s*[=:]?\s*)(["'`])[^"'`\s]+\3(?:@(["'`])[^"'`]+\4)?""",
    ("user", "login", "owner"),
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"""(?x)^\s*(?:\#\d+\s+)?(?:
      (?:ERROR|[Ee]rror|FATAL|[Ff]atal|docker|psql(?::\S+:\d+)?)\s*:\s+ | E\s+
    | (?P<shell>(?:\S*/)?(?:ba|da|z|k)?sh:\ (?:line\ \d+:\ )?)
    | (?P<make>g?make)\[\d+\]
    | (?P<npm>npm\ (?:ERR!|error))
    )"""
)
"""What tools put before the message. It differs between versions."""
_LABELS = {"shell": "sh: ", "make": "make", "npm": "npm error"}
_PLACE = LatePattern(
    r"""(?x)^\s*(?:
      (?:[A-Za-z]:)?[^\s:()'"]+:\d+(?::\d+)?(?:-\d+(?::\d+)?)?(?::|\ -)\s+
    | (?:[A-Za-z]:)?[^\s:()'"]+\(\d+(?:,\d+)?\):\s*
    | [^\s:()'"]+\.\w+:\d+:\d+:(?=[A-Za-z])
    | [^\s:()'"]+:\d+:in\s[`'][^']*':\s+                     # Ruby
    | (?:\S+:)?\S+:\([^)]*\+0x[0-9a-f]+\):\s* | (?:\S*/)?ld:\s+
    )""",
    (*_DIGITS, "ld:"),
)
_TIME = LatePattern(
    r"""(?x)(?<![/\\])(?:   # not in a path
    \b\d{4}-\d\d-\d\d(?:[T\s]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:\s?(?:Z|UTC|[+-]\d\d:?\d\d))?
    | \b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)?,?\s?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+\d{1,2}\b
    | \b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?(?:\s?[AP]M)?\b
    | \b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds?|min|minutes?|m\d+(?:\.\d+)?s)\b)""",
    _DIGITS,
)
_KEPT = LatePattern(
    r"""(?xi)
    \b(?:errno|exit\ (?:code|status)|exited\ with(?:\ code|\ status)?|code|status|signal|http(?:/[\d.]+)?|error)
    (?:\s+is)?[\s:=#(\[]{0,3}-?\d+\b(?![.:/]\d)
    | ^curl:\ \(\d+\)
    | \b[45]\d\d(?=\ (?:client|server)\ error|\ (?:not\ found|forbidden|unauthorized|internal|bad\ |service|conflict
      |gateway))""",
    _DIGITS,
)
_CODE = LatePattern(r"\b(?:[A-Z]{1,8}[-_]?\d{2,6}|[0-9][0-9A-Z]{4})\b(?<![0-9]{5})", _DIGITS)
_HOST = r"(?:[\w-]+\.)+[a-z]{2,}"
_URL = LatePattern(
    r"(?i)\b[a-z][a-z0-9+.-]{0,20}://(?:[^\s/@'\"]*@)?([^\s/:'\"?#]+)(?::\d+)?([^\s'\"?#)>\]:]*)[^\s'\")>\]:]*",
    ("://",),
)
_SCP = LatePattern(rf"(?<![\w/])(?:[\w.+-]+@)?({_HOST}):([\w.~-]+(?:/[\w.-]+)+)", ("/",))
_INC = LatePattern(r"\(@INC [a-z]+[^)]*\)", ("@INC",))
_REF = LatePattern(r"\bref \S+::\S+", ("ref ",))
_QUOTES = str.maketrans("‘’“”`", "''\"\"'")
_AT = LatePattern(rf"\b[\w.+-]+@({_HOST}|[A-Za-z][\w-]*)\b", ("@",))
_PATH = LatePattern(
    r"""(?x)(?<![\w@/\\.-]) (?:
      (?:~|\.{1,2})?/(?:[^\s:;,'"`()<>\[\]{}|=]+/?)+        # /a/b  ~/a  ./a  ../a
    | [A-Za-z]:[\\/][^\s:;,'"`()<>|]+
    | (?!@)[\w.+-]+(?:[/\\][\w.@+=-]+)+/?                    # a/b/c
    )""",
    ("/", "\\"),
)
_UUID = LatePattern(r"(?i)\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", _DIGITS)
_HEX = LatePattern(
    r"(?i)\b(?:0x[0-9a-f]+|sha\d+[:-][\w+/=]{8,}|(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,})\b", _DIGITS
)
_LONG = LatePattern(r"\b(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z0-9_]{20,}\b|\btmp\w{6,}\b", (*_DIGITS, "tmp"))
_IP = LatePattern(
    r"(?i)\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"
    r"|\[?(?:[0-9a-f]{0,4}:){3,}[0-9a-f]{0,4}\]?(?::\d+)?|(?<![\w:])::[0-9a-f:]*",
    (*_DIGITS, "::"),
)
_VERSION = LatePattern(
    r"(?<![\w.])[v^~]?\d+(?:\.\d+)+(?:[-+.]?(?:rc|a|b|alpha|beta|dev|post|pre)[.\d]*)?(?![\w])", _DIGITS
)
_NUMBER = LatePattern(
    r"(?<![\w#])[-+]?\d[\d_,]*(?:\.\d+)?(?:e[-+]?\d+)?(?=$|[^\w])|(?<=[A-Za-z_-])\d+(?=$|[^\w])", _DIGITS
)


def signature(output: str) -> tuple[str, ...]:
    """The normalised lines that name the error, each once; empty if the output has no text."""
    lines = _lines(output)
    for wanted in (_STRONG, _PLAIN, _SOFT):
        search = re.compile(wanted).search
        chosen = (line for line in lines if search(line) and not _NOISE.match(line.lstrip()))
        if together := _together(chosen):
            return together
    return _together([line for line in lines if line.strip()][-1:])


def digest(signature: tuple[str, ...]) -> str:
    """The digest of a signature; "" if it is empty."""
    if not signature:
        return ""
    return blake2b("\n".join(sorted(signature)).encode(errors="replace"), digest_size=8).hexdigest()


def causes(output: str) -> tuple[str, ...]:
    """The normalised lines that say what is wrong, without those that only count errors, name a test or passed.

    Each of them names the error by itself, whatever else failed.
    """
    lines = _cause_lines(output)
    kinds = ((_STRONG, _CAUSE), (_PLAIN,), (_SOFT,), (_SOFTER,))
    for wanted in ((_NO_GLOB,), *kinds) if _NO_MATCHES in output else kinds:
        searches = [re.compile(pattern).search for pattern in wanted]
        chosen = (_NODE.sub("", line.strip()) for line in lines if any(matches(line) for matches in searches))
        telling = (line for line in chosen if not (_only_counts(line) or _ONLY_PLACE.match(line)))
        if particular := tuple(cause for cause in _together(telling) if _is_particular(cause)):
            complete = tuple(cause for cause in particular if not cause.endswith("..."))  # pytest shortens its summary
            return (complete or particular)[:MAX_CAUSES]
    last = [line for line in lines if line.strip()][-1:]
    return tuple(cause for cause in _together(last) if _is_particular(cause) and not _only_counts(last[0]))


def _only_counts(line: str) -> bool:
    """Whether a line counts what failed or passed, or says only that something failed."""
    return _SUMMARY.search(line) is not None or _NOISE.match(line.lstrip()) is not None


def _cause_lines(output: str) -> list[str]:
    """The lines without those of tests that passed and without frames. Some lines are joined with the next one."""
    lines = [_BOX.sub("", line) for line in _lines(output) if not _PASSED.search(line)]
    if "* What went wrong:" in output:
        lines = [line.lstrip("> ") for line in lines]
    for n, line in enumerate(lines[:-1]):
        if line.startswith("CMake") and re.match(r"CMake Error at \S+ \(\w+\):$", line):  # the next line says which
            lines[n], lines[n + 1] = "", f"CMake Error: {lines[n + 1].strip()}"
        if "validation error" in line and re.search(r"validation errors? for \S+$", line):
            lines[n] = f"{line} {lines[n + 1].removeprefix('E').strip()}"
    return lines


def _core(cause: str) -> str:
    """The part of a cause that says what is wrong, without what is before and after it."""
    if any(words in cause.lower() for words in _SAID_BY_SHELLS.split("|")) and (shell := re.match(_SHELL, cause)):
        kind = (shell[2] or shell[3]).lower()
        return f"{shell[1] or shell[4]}: {'command ' * (kind == 'not found')}{kind}"
    if cause.startswith(_NO_MATCHES):
        return _NO_MATCHES
    cause = _BEHIND.sub("", _THREAD.sub("", cause))
    behind = _IMPORTER.sub("", _BEFORE_CAUSE.sub("", cause))
    core = behind if len(behind.split()) > 3 else cause
    head, _, tail = core.rpartition(" - ")
    core = tail if " - " not in head and len(tail.split()) > 3 else core
    if "current branch" in core:  # which one says nothing
        core = re.sub(r"current branch \S+", "current branch", core)
    for end in re.finditer(r"(?<=[\w'\")>])[.;]\s", core):
        if re.search(r"['\"]|[A-Z]_[A-Z]", core[: end.start()]):
            core = core[: end.start()]
            break
    return re.sub(r"['\"]", "", core.rstrip("."))


_NAMED = LatePattern(
    r"""'[^'\s]+'|"[^"\s]+"|(?<!\S)[\w@.-]+/[\w@./-]+|(?<!\S)[\w.-]+[@ ]v?<version>""", ("'", '"', "/", "<version>")
)
_ABSENT = frozenset(
    re.findall(
        r"\S+",
        """
        no none not missing unknown undefined unresolved undeclared unrecognized invalid refused denied failed required
        expected assigned unused never only cannot can unable couldn doesn isn
        """,
    )
)
"""If a cause has one of these words, its names are what the error is about."""
_SENTENCE = 6
"""Words that a cause needs at least to be recognised without its names."""


def _without_names(cause: str) -> str:
    """A cause without the names in it; "" if it says too little without them."""
    sentence = cause.partition("error: ")[2] or cause
    nameless = _NAMED.sub("<name>", sentence)
    words = [word.casefold() for word in re.findall(r"[A-Za-z]{2,}", nameless.replace("<name>", ""))]
    enough = sum(len(word) > 2 for word in words) >= _SENTENCE
    return nameless if nameless != sentence and enough and _ABSENT.isdisjoint(words) else ""


def telling_lines(output: str) -> str:
    """The lines that say something about an error, unchanged, each with the next one if it ends with a colon."""
    lines: list[str] = []
    search = [re.compile(pattern).search for pattern in (_STRONG, _PLAIN, _SOFT, _SOFTER)]
    introduced = False
    for line in _lines(output):
        names_error = any(matches(line) for matches in search)
        if introduced or (names_error and not _PASSED.search(line) and not _SUMMARY.search(line)):
            lines.append(line.strip())
            introduced = line.rstrip().endswith(":") and not introduced
    return "\n".join(lines[:MAX_TELLING])


_WELL = (
    r"\b(?:0|no) (?:\w+ )?(?:errors?|fail\w*|issues?|problems?|warnings?)\b"
    r"|\b(?:errors?|fail\w*|warnings?)\W{1,2}0\b"
)
_UNWELL = (
    r"(?i)\bfail(?:s|ed|ing|ures?)?\b|\b[1-9]\d* (?:errors?|issues?|problems?)\b|\bissues found\b|^not ok\b|[✗✘✖✕]"
    r"|\bwould (?:be )?reformat|\bunsuccessful|\bfixable\b|\bsegmentation fault\b|\bcore dumped\b"
    r"|^(?:terminated|aborted|killed)\b"
)
_REPORTS = r"\bFAIL(?:ED|URE)?\b|\b[1-9]\d* (?:\w+ )?(?:fail\w*|errors?|issues?|problems?)\b|[✗✘✖✕]|^not ok\b"
_SUCCESS = (
    r"\b[1-9]\d* (?:tests? )?pass(?:ed|ing)\b|\ball (?:\w+ ){0,2}passed\b|^OK\b|\bsuccess(?:ful|fully)?\b"
    r"|\bsucceeded\b|\bcompiled\b|^\s*finished\b|\bbuilt in\b|^(?:added|changed|removed) \d+ packages?\b"
)
"""The output of a command that succeeded."""


def is_well(output: str) -> bool:
    """Whether an output says that a command succeeded, and nothing about an error."""
    successes = [
        line for line in _lines(output) if _PASSED.search(line) or re.search(f"{_SUCCESS}|{_WELL}", line, re.I)
    ]
    others = [re.sub(_WELL, "", line, flags=re.I) for line in _lines(output) if not _PASSED.search(line)]
    # Compiled here, as hooks import this file.
    searches = [re.compile(pattern).search for pattern in (_UNWELL, _STRONG, _PLAIN, _SOFT)]
    return bool(successes) and not any(matches(line) for line in others for matches in searches)


def names_error(output: str) -> bool:
    """Whether a line of an output reports an error, and does not only have words such as "failing", as any text may."""
    searches = [re.compile(pattern).search for pattern in (_REPORTS, _STRONG, _PLAIN)]
    return any(matches(line) for line in _lines(output) for matches in searches if not _PASSED.search(line))


def keys(output: str) -> tuple[str, ...]:
    """The keys of an error: first the digest of its signature, then those of its causes and of the codes of rules.

    Two outputs are about the same error if they share a key.
    """
    cause_lines, signature_lines = causes(output), signature(output)
    at_places = " ".join(line for line in _lines(output) if _AT_PLACE.match(line))
    codes = list(dict.fromkeys(_RULE_CODE.findall(" ".join((*cause_lines, at_places)))))[:MAX_CAUSES]
    only_counts = bool(signature_lines) and all(_only_counts(line.replace("#", "1")) for line in signature_lines)
    whole_key = "" if only_counts or "".join(cause_lines).startswith(_NO_MATCHES) else digest(signature_lines)
    cause_keys = (
        digest((one,))
        for one in (*cause_lines, *map(_core, cause_lines), *filter(None, map(_without_names, cause_lines)), *codes)
    )
    return tuple(dict.fromkeys(filter(None, (whole_key, *cause_keys, *_built_keys(output)))))


_NO_EXPORT = (
    r"(?i)\bexport named\b.*\bnot found|\bnot (?:provide an export|exported (?:by|from))|\bno exported member\b"
)
_BUILT = r"(?:([\w@.-]*\w)[/\\])?(?:dist|build|out)(?=[/\\'\"])"


def _built_keys(output: str) -> Iterable[str]:
    """The keys of an error that misses a name in what was built. Which name it is says nothing: the build is old."""
    for line in _lines(output) if "export" in output or "Export" in output else ():
        if re.search(_NO_EXPORT, line) and (built := re.search(_BUILT, line)):
            yield digest(("not exported by", built[0]))


def command_key(command: str) -> str:
    """The key of a command, whatever its error is. It is only used for habits."""
    return digest(("command", normalised(plain(command))))


_NOT_RUN = LatePattern(
    r"\b(?:script|command|recipe|task|target)\b.{0,40}\b(?:not found|does not exist)|\bmissing script\b|: not found\b"
    r"|\b(?:unknown|unrecognized|no such) (?:sub)?command\b|\bno rule to make target\b",
    ("not found", "does not exist", "missing script", "command", "no rule to make"),
    re.IGNORECASE,
)
"""The output if a command, or the script that it names, does not exist."""


def keys_at(command: str, output: str) -> tuple[str, ...]:
    """The keys by which lessons about a failure are found: those of its error, and of its command if that ran and the
    output does not say that every fix is unsafe."""
    unsafe = "nsafe fix" in output and not re.search("Safe fix|would (?:have printed|reformat)", output)
    of_command = () if unsafe or _NOT_RUN.search(output[:4000]) else (command_key(command),)
    return (*keys(output), *proposal_keys(output), *argument_keys(command, output), *of_command)


_ARGUMENT = LatePattern(r"[A-Za-z][\w-]+")
_BEFORE_PACKAGES = ("-m", "install", "add", "i")
"""Words before the name of a package or module, which is what an error is about."""
_JOINS = LatePattern(r"[;&|<>`$()\n]")


def argument_keys(command: str, output: str, steps: Sequence[str] | None = None) -> tuple[str, ...]:
    """The keys of an error that names an argument of its command, whatever the argument is: "No such container: web".

    The program, its subcommand, paths and the names of packages are no such arguments.

    Args:
        steps: the steps of a remedy. If given, arguments that are in none of them do not count.
    """
    words = plain(command).split()
    if len(words) < 3 or _JOINS.search(" ".join(words)):
        return ()
    found: dict[str, None] = {}
    for n, word in enumerate(words[2:], 1):
        name = word.strip("'\"")
        forms = (f"'{name}'", f'"{name}"', f"`{name}`", f"‘{name}’", f"“{name}”", f": {name}")
        if not _ARGUMENT.fullmatch(name) or words[n] in _BEFORE_PACKAGES or not any(form in output for form in forms):
            continue
        if steps is not None and not any(name in re.split(r"[\s=]+", step) for step in steps):
            continue
        named = re.compile(rf"(?<=['\"]){re.escape(name)}(?=['\"])|(?<=: ){re.escape(name)}$")
        for line in telling_lines(output).translate(_QUOTES).splitlines():
            if named.search(line) and _says_enough(cause := normalised(named.sub("<argument>", line))):
                found[digest((f"argument of {words[0].rpartition('/')[2]}", cause))] = None
    return tuple(found)[:MAX_CAUSES]


def _says_enough(cause: str) -> bool:
    """Whether a cause says what is wrong without the name in it."""
    words = [word.casefold() for word in _MEANING.findall(cause.replace("<argument>", ""))]
    return len(words) > 2 and not _GENERIC.issuperset(words)


_PROPOSES = ("run", "use", "using", "fix", "try", "instal", "updat", "prepend", "pass", "set", "need", "add", "exec")
_PROPOSED = r"[`'\"]((?:\./)?[A-Za-z][\w./:@-]*(?: [^`'\"\n]{1,60})+|\./[\w./-]+)[`'\"]"
_INTRODUCES = r"(?:\b(?:run|use|using|with|command|add it|browsers)):[\s│║]*$"
_WANTED = r"(?i)\b(?:set|define|export|missing|requires?d?|undefined|unset|provide|must|needs?)\b|\bis not\b"
_VARIABLE = r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b"
MAX_PROPOSALS = 4
"""Commands and variables that are read from an output, at most."""


def _proposals(output: str) -> Sequence[str]:
    """The commands that an output proposes to run, and the variables that it says have to be set."""
    proposed: list[str] = []
    introduced = False
    for line in _lines(output):
        if introduced and (command := line.strip(" \t│║$>")):
            proposed.append(command)
            introduced = False
        elif (quoted := "`" in line or "'" in line or '"' in line) or line.rstrip(" \t│║").endswith(":"):
            low = line.lower()
            if any(word in low for word in _PROPOSES):
                proposed += [match[1] for match in re.finditer(_PROPOSED, line)] if quoted else []
                introduced = bool(re.search(_INTRODUCES, line))
        if "_" in line and re.search(_WANTED, line):
            proposed += [match[0] for match in re.finditer(_VARIABLE, line)]
        if len(proposed) >= MAX_PROPOSALS:
            break
    return list(dict.fromkeys(proposed))[:MAX_PROPOSALS]


def proposal_keys(output: str, steps: Sequence[str] | None = None) -> tuple[str, ...]:
    """The keys of an error from what its output proposes. steps: only proposals that one of these steps follows."""
    words = [set(re.split(r"[\s=]+", step)) for step in steps or ()]
    return tuple(
        digest(("proposed", normalised(proposal)))
        for proposal in _proposals(output)
        if steps is None or any(set(re.split(r"[\s=]+", proposal)) <= step_words for step_words in words)
    )


def _is_particular(line: str) -> bool:
    """Whether a line says more than that something failed."""
    if "command not found" in line and re.match(_SHELL, line):  # even if the name of the command is short
        return True
    words = (word.rpartition(".")[2] for word in _MEANING.findall(line))
    return any(word.casefold() not in _GENERIC and not (word[:2] == "to" and word[2:3].isupper()) for word in words)


def normalised(line: str) -> str:
    """A line without what differs from run to run and from machine to machine."""
    line = line.strip()[:_MAX_LINE].translate(_QUOTES)
    line = _PLACE.sub("", line)
    for _ in range(2):  # psql: error: ...
        line = _LABEL.sub(lambda match: _LABELS.get(match.lastgroup or "", ""), line)
    line = _INC.sub("(@INC)", line)
    line = _USER.sub(r"\1 <user>", line)
    parts = list[str]()

    def keep(text: str) -> str:
        parts.append(text)
        return f"\x00{chr(0xE000 + len(parts) - 1)}\x00"

    line = _TIME.sub("<time>", line)
    line = _KEPT.sub(lambda match: keep(match[0]), line)
    line = _CODE.sub(lambda match: keep(match[0]), line)
    line = _UUID.sub("<id>", line)
    line = _URL.sub(lambda match: f"<url {match[1].lower()}/{_last(match[2])}>", line)
    line = _REF.sub("ref <id>", _SCP.sub(lambda match: f"<url {match[1].lower()}/{_last(match[2])}>", line))
    line = _AT.sub(r"<user>@\1", line)
    line = _PATH.sub(_path, line)
    for pattern, name in ((_HEX, "<hash>"), (_LONG, "<id>"), (_IP, "<ip>"), (_VERSION, "<version>"), (_NUMBER, "#")):
        line = pattern.sub(name, line)
    line = re.sub("\x00(.)\x00", lambda match: parts[ord(match[1]) - 0xE000], line)
    return " ".join(line.split())[:_MAX_NORMALISED]


def _together(lines: Iterable[str]) -> tuple[str, ...]:
    normal: dict[str, None] = {}
    for line in dict.fromkeys(lines):
        if text := normalised(line):
            normal[text] = None
        if len(normal) == MAX_LINES:
            break
    return tuple(normal)


def _path(match: re.Match[str]) -> str:
    path = match[0]
    first = re.split(r"[/\\]", path)[0]
    if re.fullmatch(_HOST, first, re.IGNORECASE):  # github.com/a/b: a name, not a place
        return path
    return _last(path)


def _last(path: str) -> str:
    end = path.rstrip("/\\.")
    return re.split(r"[/\\]", end)[-1] + path[len(path.rstrip(".")) :]


@lru_cache(maxsize=2)  # a key needs them four times
def _lines(output: str) -> Sequence[str]:
    if len(output) > _HEAD + _TAIL:
        output = f"{output[:_HEAD]}\n{output[-_TAIL:]}"
    output = _ESCAPES.sub("", output.replace("\r\n", "\n"))
    return tuple(line.rpartition("\r")[2][:_MAX_LINE] for line in output.split("\n"))
