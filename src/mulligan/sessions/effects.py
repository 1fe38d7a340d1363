"""Tell what the commands in a text do, by their programs, words and files and not by how they are spelled.

A switch is read by its name: whether it turns a protection off. The screening of lessons flags a text with such a
command, and hooks never offer one as what fixed an error (`going_around`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from mulligan.core.late_pattern import LatePattern
from mulligan.sessions.commands import HEREDOC, parts, written
from mulligan.text.safeguards import LOOK_ALIKES, folded, patterns

_BUILT = LatePattern(
    r"(?:\S*/)?(?:node_modules|\.ds_store|thumbs\.db|dist|build|target|out|coverage|htmlcov|vendor|venv|tmp|temp|[\w.-]*cache\w*|__pycache__"
    r"|pods|\.(?:next|nuxt|turbo|venv|tox|nox|parcel-cache|gradle|angular|svelte-kit|nyc_output|output|eggs|coverage|dart_tool)"
    r"|obj|_build|cmake-build-\w+|deriveddata|[\w.*-]+\.(?:egg-info|tsbuildinfo)"
    r"|package-lock\.json|yarn\.lock|\*\.(?:pyc|o|log|tmp)|[\w.-]+\.(?:pyc|o|log|tmp|lock|pid|sock))(?:/\S*)?"
)
"""What is made anew by the next build: removing it destroys nothing."""
_FINDS = LatePattern(
    r"\bfind (?![\"']?[/~$])(?:(?!-(?:o|not|delete|exec)\b|!)[^;&|\s]+ )*?-i?name [\"']?([^\s\"']+)[\"']?"
    r"(?: -(?:type|prune|print0?|maxdepth)(?: [a-z\d]\b)?)*"
    r"(?: -delete\b| -exec rm (?:-\w+ )?\{\} ?(?:\\;|;|\+)| ?\| ?xargs (?:-0 )?rm(?: -\w+)*)"
)
"""What finds files by one name and removes them."""
_REMOVES = LatePattern(r"(?<![\w-])(?<!compose )(?:rm|git rm|unlink|rmdir|del|remove-item)\s+((?:-\S+\s+)*)([^;&|\n]*)")

_ALLOWED = ("foreign code", "payment")
"""What a remedy may do: most install packages."""

NEGATION = LatePattern(
    r"(?:\b(?:never|not|don't|doesn't|cannot|avoid|refuse|instead of|against|rather than|jamais|ne|n'|évite\w*"
    r"|nie(?:mals)?|nicht"
    r"|keine?|statt|pas de|nunca|no|não|evit[ae]\w*)\b"
    r"|не\s|никогда|нельзя|不要|不得|不能|切勿|禁止|避免|勿|别)[^.;:!?,。]{0,40}$".translate(LOOK_ALIKES)
)
"""Before what it forbids."""
FORBIDS = LatePattern(
    r"(?:[^`\n]{0,40}`)?\W{0,3}(?:(?:is|are|must be|should be) (?:never|not|forbidden)\b"
    r"|(?:is|are|was|were)n't (?:allowed|needed|permitted)\b"
    r"|は?禁止|(?:is|are|was|were) (?:refused|rejected|reported|blocked|removed|a leftover)\b"
    r"|(?:is|are) (?:insecure|unsafe|dangerous|wrong)\b|loses?\b|(?:(?:has|have) )?bro(?:ke|ken)\b"
    r"|(?:\w+ )?(?:hides|masks|conceals) [^.!?]{0,80}?\b(?:instead|not)\b)"
)
"""Behind a command: it is forbidden, or its harm is named."""


def going_around(step: str) -> str:
    """What is wrong with a step as a remedy, such as "skips a check"; "" for nothing.

    Stricter than the screening of texts: a remedy is done without a second thought, and its absence harms nobody.
    """
    plain = _FINDS.sub(lambda found: "" if _BUILT.fullmatch(found[1]) else found[0], folded(step))
    for removal in _REMOVES.finditer(plain):
        paths = [path.strip("\"'") for path in removal[2].split() if not path.startswith(("2>", ">"))]
        if not paths or not all(map(_BUILT.fullmatch, paths)):
            return "destroys work"
    plain = _REMOVES.sub("", plain)
    for table in ("commands", "remedies"):
        for flag, pattern in patterns(table, _ALLOWED):
            if pattern.search(plain):
                return flag
    return next(chain(_effects(step), _switch_effects(step)), "")


_SPANS = LatePattern(r"```\w*\n(.*?)```|``([^\n]+?)``|`([^`]+)`", flags=re.DOTALL)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WRAPPERS = LatePattern(
    r"(?:sudo|env|nohup|time|exec|command|xargs|setsid|nice|watch|doas|then|do|\{|-\S*|\w+=.*|[\d.]+[smh]?)"
)
_FETCHERS = _words("curl wget aria2c http https xh iwr irm invoke-webrequest invoke-restmethod lynx fetch nc ncat")
_SENDERS = _FETCHERS | _words(
    "netcat socat telnet scp sftp rsync rclone ftp lftp tftp ssh aws gsutil gcloud az mc s3cmd b2 azcopy mail mailx"
    " sendmail mutt swaks croc wormhole ffsend restic borg dig nslookup drill gh glab"
)
_LOOKUPS = _words("dig nslookup drill host ping getent")
"""What tells a name server the names that it looks up."""
_INSTALLERS = _words("npx bunx uvx pipx pip pip3 uv npm pnpm yarn bun deno go cargo gem composer poetry pdm brew conda")
_REPOSITORY = LatePattern(r"(?:github|gitlab|bitbucket|gist):|(?:git|hg)\+\w+:|https?://\S+\.(?:tgz|whl|zip|gz)$")
_INTERPRETERS = _words(
    "sh bash zsh dash ksh fish python python2 python3 node deno bun perl ruby php lua pwsh powershell iex"
    " invoke-expression source . eval"
)
_EDITORS = _words("sed perl ed ex awk truncate rm mv cp tee shred install ln unlink patch")
_PRIVATE = LatePattern(
    r"(?:^|[/=@:])\.env(?:\.\w+)?$|(?:~|\$HOME|/root|/home/\w+)/?(?:\.\w|$)|\bid_(?:rsa|ed25519|ecdsa)|credential|secret"
    r"|password|\.pem$|/etc/(?:passwd|shadow)|\$\((?:env|cat|hostname|whoami|printenv)|\$\{?\w*(?:TOKEN|SECRET|KEY|PASS)\w*"
    r"|\.(?:ssh|aws|kube|gnupg|netrc)\b|^@?\.$|history$",
)
_READS_PRIVATE = LatePattern(r"(?:env|printenv|set|history|hostname|whoami|declare|export)$")
_RUNS = LatePattern(r"\b(?:exec|eval|system|popen)\b")
_FETCHES = LatePattern(r"https?://|urlopen|requests\.|base64|fetch\(")
_READS = LatePattern(r"environ|process\.env|\bENV\b|\.ssh|id_rsa|\.aws|\.env\b")
"""In the code that a command hands to an interpreter: runs a text, gets one, reads what is private."""
_VERDICT = LatePattern(
    r"(?:^|/)(?:tests?|specs?|__tests__|graders?)(?:/|$)|(?:^|/)test_\w+|_test\.\w+$|\.(?:spec|test)\.\w+$|grad(?:e|er|ing)\w*\.\w+$|expected\w*\.\w+$"
)
_PLACES = (
    (
        "persists",
        LatePattern(
            r"\.(?:bashrc|zshrc|profile|bash_profile|zshenv|zprofile)$|/etc/(?:cron|profile|rc\.local|systemd)|/cron\.|autostart/|LaunchAgents/|\.config/systemd/"
        ),
    ),
    (
        "widens rights",
        LatePattern(
            r"authorized_keys$|/etc/(?:sudoers|pam\.d|ssh/)|\.ssh/config$|/etc/hosts$|\.claude/settings|\.codex/config"
        ),
    ),
    ("skips a check", LatePattern(r"\.git/hooks/|\.pre-commit-config\.yaml$|\.github/workflows/|\.husky/")),
    (
        "foreign code",
        LatePattern(
            r"(?:pip\.conf|pip\.ini|\.npmrc|\.yarnrc(?:\.yml)?|sources\.list(?:\.d/.*)?|\.cargo/config(?:\.toml)?|\.gemrc)$"
        ),
    ),
)
"""Files, and what it is to write to them."""
_ORDINARY = LatePattern(r"\bPATH=|\.(?:local|cargo|bun|nvm|pyenv)\b|completion|\b(?:JAVA_HOME|EDITOR|LANG)=")
"""What is added to a shell profile in every installation."""
_LOCAL = LatePattern(r"localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]|\.(?:internal|local|lan|corp|intranet)\b")
_REMOTE = LatePattern(r"://|^\S+@\S+:|^[\w.-]+:(?!\d)|^\w[\w-]*(?:\.[\w-]+)+[/:]|^\d{1,3}(?:\.\d{1,3}){3}")


def command_effects(text: str) -> Iterator[str]:
    """The flags of the commands in a text and of its switches, but for those that the text warns of."""
    for match in _SPANS.finditer(text):
        if _denied(text, match):
            continue
        command = match[1] or match[2] or match[3] or ""
        yield from _effects(command)
    yield from _switch_effects(text)


def _switch_effects(text: str) -> Iterator[str]:
    for match in _SWITCH.finditer(text):
        if _foreign_source(text, match):
            yield "foreign code"
        if _turns_off(match) and not _denied(text, match):
            yield "widens rights"


def _denied(text: str, match: re.Match[str]) -> bool:
    """Whether the text warns of what was matched, before or behind it."""
    before, behind = text[max(match.start() - 60, 0) : match.start()], text[match.end() : match.end() + 120]
    return bool(NEGATION.search(folded(before)) or FORBIDS.match(folded(behind)))


def _effects(command: str) -> Iterator[str]:
    commands = [core for words in parts(command) if (core := _core(words))]
    programs = [words[0].rsplit("/", 1)[-1].lower() for words in commands]

    def words_of(kind: Collection[str]) -> list[str]:
        return [word for words, name in zip(commands, programs, strict=True) if name in kind for word in words]

    remote = any(_REMOTE.search(word) and not _LOCAL.search(word) for words in commands for word in words[1:])
    sends = [words for words, program in zip(commands, programs, strict=True) if program in _SENDERS]
    if sends and remote:
        arguments = [word for words in sends for word in words[1:]]
        piped = any(_READS_PRIVATE.match(program) for program in programs) or any(
            _PRIVATE.search(word) for words in commands if words not in sends for word in words[1:]
        )
        if any(_PRIVATE.search(word) for word in arguments) or piped:
            yield "uploads"
    looks_up = not _LOOKUPS.isdisjoint(programs) and re.search(r"[$`)}]\S*\.\w", command)
    if looks_up and any(
        _PRIVATE.search(word) or _READS_PRIVATE.match(word) for word in re.split(r"[\s();`]+", command)
    ):
        yield "uploads"
    if any(_REPOSITORY.match(word) and not _LOCAL.search(word) for word in words_of(_INSTALLERS)):
        yield "foreign code"
    fetched = remote and not _FETCHERS.isdisjoint(programs)
    if fetched and not _INTERPRETERS.isdisjoint(programs):
        yield "remote code"
    code = "\n".join((*(body[0] for body in HEREDOC.finditer(command)), *words_of(_INTERPRETERS)))
    if _RUNS.search(code) and _FETCHES.search(code):
        yield "runs hidden code"
    if _FAR.search(code) and _READS.search(code):
        yield "uploads"
    for words, program in zip(commands, programs, strict=True):
        in_place = program not in ("sed", "perl", "awk") or any(word.startswith(("-i", "-pi")) for word in words)
        if program in _EDITORS and in_place and any(map(_VERDICT.search, words[1:])):
            yield "skips a check"
    targets = [*(word.strip("\"'") for word in written(command)), *words_of(_EDITORS)]
    for flag, place in _PLACES:
        if any(map(place.search, targets)) and not (flag == "persists" and _ORDINARY.search(command)):
            yield flag


def _core(words: Sequence[str]) -> Sequence[str]:
    """The words of a command from its program on."""
    at = 0
    while at < len(words) - 1 and _WRAPPERS.fullmatch(words[at]):
        at += 1
    return words[at:]


# --- switches by their names ------------------------------------------------------------------------------------------

_SWITCH = LatePattern(
    r"(?P<name>(?<![\w/])-{0,2}[A-Za-z][\w.-]{3,60})[\"']?"
    r"(?:\s{0,2}[=:]\s{0,2}|[\"'`]?\s(?:to|auf|à|en|a|para|на) `?|\s)[\"'$]{0,2}(?P<value>[\w-]+)"
    r"|(?P<alone>(?<!\S)[`\"']?--?[A-Za-z][\w-]{4,50})"
)
_PARTS = LatePattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_PROTECTS = _words(
    "verify verification verifypeer verifyhost verifier tls ssl cert certs certificate certificates hostkey hostname"
    " signature signatures sign gpg gpgcheck checksum integrity auth authentication authorization sandbox security"
    " secure firewall antivirus protection hooks verified reject unauthorized strict audit csrf seccomp apparmor"
    " selinux approval confirmation policy sslverify"
)
_LETS = _words("no skip disable disabled ignore allow without bypass insecure unsafe trust accept dangerously")
_OFF = _words("false no off none never disable disabled 0 permissive always")
_UNSAFE = _words("insecure untrusted unverified unauthenticated unsigned selfsigned bypass dangerously")

_BROWSER = LatePattern(
    r"--no-sandbox\b.*(?:chrom|puppeteer|playwright)|(?:chrom|puppeteer|playwright).*--no-sandbox\b",
    flags=re.IGNORECASE | re.DOTALL,
)
"""Browsers refuse to start as root in a container with their sandbox."""


_SOURCES = _words("registry index mirror repository repo proxy registryserver indexurl goproxy extra")
_FAR = LatePattern(
    r"[\w+-]*://(?!localhost\b|127\.|10\.|192\.168\.|[\w.-]+\.(?:internal|local|lan|corp|intranet)\b)[^\s/]+"
)


def _foreign_source(text: str, switch: re.Match[str]) -> bool:
    """Whether packages are fetched from an unencrypted address."""
    name = switch["name"] or switch["alone"]
    if not any(word.lower() in _SOURCES for word in _PARTS.findall(name)) or re.fullmatch(r"[a-z]+", name):
        return False
    at = switch.start("value") if switch["value"] else switch.end()
    address = _FAR.match(text[at : at + 200].lstrip(" =:\"'"))
    return bool(address and address[0].startswith("http:"))


def _turns_off(switch: re.Match[str]) -> bool:
    """Whether a switch turns a protection off, by its name and value."""
    name = switch["name"] or switch["alone"]
    words = {word.lower() for word in _PARTS.findall(name)}
    option = name.lstrip("`\"'").startswith("-")
    value = (switch["value"] or "").lower()
    protects = not _PROTECTS.isdisjoint(words)
    identifier = option or "_" in name or "." in name or bool(re.search(r"[a-z][A-Z]", name)) or "-" in name.strip("-")
    if not identifier or _BROWSER.search(switch.string):
        return False
    lets = not _LETS.isdisjoint(words)
    if protects and len(words) > 1 and lets:
        return value not in _OFF or option
    if option and not _UNSAFE.isdisjoint(words):
        return True
    return protects and len(words) > 1 and not words & {"strict", "policy", "audit"} and value in _OFF
