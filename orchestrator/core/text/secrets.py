"""Finds secrets: issuers' token forms, settings that hold secrets of any form, and private keys over several lines.

Keys are found also inside lists, quotations, tables and calls.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

_A = r"(?<![A-Za-z0-9])"
"""Each form begins where no such character is before it, and its runs are possessive: one pass, no going back."""
_Z = r"(?![A-Za-z0-9])"
_UNTIL_VALUE = r"[\"']?\]?[ \t]{0,8}(?:=>|:=|[:=,>])[ \t]{0,8}[\"']?"
_WITH_DIGIT = r"(?=[A-Za-z._~+/=-]{0,200}[0-9])"

# Sources: the issuers' documentation of their prefixes, compared with the rules of gitleaks.
_ISSUED: Final = {
    "aws-access-key": rf"{_A}(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{{16}}{_Z}",
    "aws-secret-key": (
        r"(?i:secret[_.-]?access[_.-]?key|aws[_.-]?secret[_.-]?key)"
        rf"{_UNTIL_VALUE}(?P<aws>[A-Za-z0-9/+]{{40}})(?![A-Za-z0-9/+])"
    ),
    "github-token": rf"{_A}(?:gh[pousr]_[A-Za-z0-9]{{36,}}+|github_pat_[A-Za-z0-9_]{{36,}}+)",
    "gitlab-token": rf"{_A}gl(?:pat|dt|ft|soat|rt|cbt|ptt|agent|imt|oas)-[A-Za-z0-9_.-]{{20,}}+",
    "slack-token": (
        rf"{_A}(?:xox[abceoprs]-[A-Za-z0-9-]{{10,}}+|xoxd-[A-Za-z0-9%/+=-]{{10,}}+|xapp-[0-9]-[A-Za-z0-9-]{{10,}}+"
        r"|hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{30,}+)"
    ),
    "stripe-key": rf"{_A}(?:(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{{16,}}+|whsec_[A-Za-z0-9+/=]{{24,}}+)",
    "google-key": (
        rf"{_A}(?:AIza[A-Za-z0-9_-]{{35}}(?![A-Za-z0-9_-])|GOCSPX-[A-Za-z0-9_-]{{28,}}+|ya29\.[A-Za-z0-9_-]{{20,}}+)"
    ),
    "anthropic-key": rf"{_A}sk-ant-[A-Za-z0-9_-]{{20,}}+",
    "openai-key": rf"{_A}sk-(?:(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{{20,}}+|[A-Za-z0-9]{{32,}}+)",
    "npm-token": rf"{_A}npm_[A-Za-z0-9]{{36}}{_Z}",
    "pypi-token": rf"{_A}pypi-AgE[A-Za-z0-9_-]{{50,}}+",
    "json-web-token": r"(?<![A-Za-z0-9_-])ey[JK][A-Za-z0-9_-]{8,}+\.ey[JK][A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+",
    "azure-key": (
        r"(?i:AccountKey|SharedAccessKey)=(?P<azure>[A-Za-z0-9+/]{40,}+={0,2})"
        r"|[?&]sig=(?P<sas>[A-Za-z0-9%/+]{43,}+={0,2})"
        r"|(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,}+"
    ),
    "hugging-face-token": rf"{_A}(?:hf_[A-Za-z0-9]{{34,40}}|api_org_[A-Za-z0-9]{{34}}){_Z}",
    "groq-key": rf"{_A}gsk_[A-Za-z0-9]{{40,}}+",
    "xai-key": rf"{_A}xai-[A-Za-z0-9]{{60,}}+",
    "perplexity-key": rf"{_A}pplx-[A-Za-z0-9]{{40,}}+",
    "replicate-token": rf"{_A}r8_[A-Za-z0-9]{{37}}{_Z}",
    "docker-token": rf"{_A}dckr_[po]at_[A-Za-z0-9_-]{{24,}}+",
    "figma-token": rf"{_A}figd_[A-Za-z0-9_-]{{36,}}+",
    "linear-key": rf"{_A}lin_(?:api|oauth)_[A-Za-z0-9]{{40,}}+",
    "notion-token": rf"{_A}(?:ntn_[A-Za-z0-9]{{40,}}+|secret_{_WITH_DIGIT}[A-Za-z0-9]{{43}}{_Z})",
    "databricks-token": rf"{_A}dapi[a-f0-9]{{32}}(?:-[0-9]{{1,2}})?{_Z}",
    "supabase-key": rf"{_A}(?:sbp_[a-f0-9]{{40}}{_Z}|sb_secret_[A-Za-z0-9_-]{{20,}}+)",
    "planetscale-token": rf"{_A}pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{{32,}}+",
    "discord-token": (
        r"(?<![A-Za-z0-9_.-])(?=[A-Za-z_-]{1,27}[0-9])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6,7}"
        r"\.(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{27,}+"
    ),
    "mailgun-key": rf"(?<![A-Za-z0-9_-])key-[a-f0-9]{{32}}{_Z}",
    "twilio-key": (
        rf"(?i:twilio).{{0,80}}?{_A}(?P<twilio>(?:SK)?[a-f0-9]{{32}}){_Z}"
        rf"|{_A}AC[a-f0-9]{{32}}:(?P<sid>[a-f0-9]{{32}}){_Z}"
    ),
    "digitalocean-token": rf"{_A}do[opr]_v1_[a-f0-9]{{64}}{_Z}",
    "sendgrid-key": rf"{_A}SG\.[A-Za-z0-9_-]{{22}}\.[A-Za-z0-9_-]{{43}}(?![A-Za-z0-9_-])",
    "shopify-token": rf"{_A}shp(?:at|ca|pa|ss)_[a-fA-F0-9]{{32}}{_Z}",
    "vault-token": rf"{_A}hv[sbr]\.[A-Za-z0-9_-]{{24,}}+",
    "telegram-token": rf"{_A}[0-9]{{8,10}}:AA[A-Za-z0-9_-]{{33}}(?![A-Za-z0-9_-])",
    "age-key": rf"{_A}AGE-SECRET-KEY-1[0-9A-Z]{{58}}{_Z}",
}

# By what is before them. Where an issuer's form has the same place, that names the kind: these come last.
_HELD: Final = {
    # PKCS#1, PKCS#8 and SEC 1 in DER, and OpenSSH's: each begins with the same bytes, so with these letters.
    "key-line": (
        r"(?<![A-Za-z0-9+/])(?:MII[A-Za-z0-9+/]{3}IBA(?:AK[BC]|DANBgkqhkiG9w0B)|M[CEF][A-Za-z0-9]CAQ[AE]wBQYDK2V"
        r"|MHcCAQEEI|MI[GH][A-Za-z0-9]AgE[AB]|b3BlbnNzaC1rZXktdjEA)[A-Za-z0-9+/]{20,}+={0,2}"
    ),
    "json-web-key": r"\"(?:d|dp|dq|qi|p|q)\"\s{0,4}:\s{0,4}\"(?P<jwk>[A-Za-z0-9_-]{40,}+)(?=\")",
    "authorization": (
        r"(?i:authorization)[\"']?[ \t]{0,4}[:=,][ \t]{0,4}[\"'`]?(?i:bearer|basic|token)[ \t]{1,4}"
        rf"{_WITH_DIGIT}(?P<authorization>[A-Za-z0-9._~+/=-]{{16,}}+)"
    ),
    "url-password": r"(?<=[A-Za-z0-9]://)[^\s/:@\"'<>\[\](){}$]{0,64}:(?P<password>[^\s/@\"'<>\[\](){}$]{3,256}+)@(?=[A-Za-z0-9\[])",
}

KINDS: Final[tuple[str, ...]] = (*_ISSUED, *_HELD, "private-key", "key-lines")
"""What a marker may name; the last two are lines of keys."""

_COMPILED = tuple((kind, re.compile(form)) for kind, form in (_ISSUED | _HELD).items())
_PERCENT = re.compile(r"%([2-7][0-9A-Fa-f])")
_SHORTEST = 20

MOST_KEY_LINES: Final = 400
"""A key whose last line is further away than this has lost it; its lines are known by their base64 alone."""

_RUN = 3
"""So many full lines of base64 in a row, mixed in case, are taken for a key whose head is not in sight."""

_MOST_BETWEEN = 4
"""Lines without base64 between two of the same key: headers, blank ones, a wrapped line's rest."""
_LONGEST_BETWEEN = 80

_LABEL = r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_BEGIN = re.compile(rf"-{{4,5}} ?BEGIN {_LABEL}|PuTTY-User-Key-File-[0-9]:")
_END = re.compile(rf"-{{4,5}} ?END {_LABEL}|Private-(?:MAC|Hash): *[0-9a-f]*")
_OPEN = re.compile(r"-----BEGIN [A-Z0-9 ]{1,60}-----")
_KEY_LINE = re.compile(r"""[\s"'#*/+]{0,40}[A-Za-z0-9+/]{60,76}={0,2}(?:\\n)?[\s"',;+\\]{0,12}\Z""")
_KEY_TAIL = re.compile(r"""[\s"'#*/+]{0,40}[A-Za-z0-9+/]{1,76}={0,2}(?:\\n)?[\s"',;+\\]{0,12}\Z""")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{24,}+={0,2}")
_NUMBER = re.compile(r"[0-9]+")


class Secret(msgspec.Struct, frozen=True, order=True):
    """Where a secret is: 0-based line, and characters from `start` to before `end` in it."""

    line: int
    start: int
    end: int
    kind: str


def secrets_in(line: str) -> Iterator[tuple[int, int, str]]:
    """Where a secret is in a line, as it is written and as it reads with `%2D` and its like taken back.

    Start, end and kind; in order, none overlapping: of two that do, the one that begins first, else the
    longer, else the issuer's. Cost: O(len(line)).
    """
    if len(line) < _SHORTEST:
        return
    spans = [(start, -end, rank) for start, end, rank in _matched(line)]
    if "%" in line:
        plain, places = _unquoted(line)
        spans += [(places[start], -places[end], rank) for start, end, rank in _matched(plain)]
    taken = 0
    for start, end, rank in sorted(spans):
        if start >= taken:
            yield start, -end, _COMPILED[rank][0]
            taken = -end


def _matched(line: str) -> Iterator[tuple[int, int, int]]:
    for rank, (_, form) in enumerate(_COMPILED):
        for match in form.finditer(line):
            yield (*match.span(match.lastgroup or 0), rank)


def _unquoted(line: str) -> tuple[str, list[int]]:
    """The line with its ASCII characters in percent form taken back, and where each is in it; and its end."""
    pieces: list[str] = []
    places: list[int] = []
    at = 0
    for match in _PERCENT.finditer(line):
        pieces += [line[at : match.start()], chr(int(match[1], 16))]
        places += [*range(at, match.start()), match.start()]
        at = match.end()
    pieces.append(line[at:])
    places += range(at, len(line) + 1)
    return "".join(pieces), places


def key_lines(lines: Sequence[str]) -> Iterator[Secret]:
    """The lines of keys, ascending; also of keys of which only the middle or the end is in sight.

    Of a key that begins and ends in sight all that is between; of one without an end each line with 24
    or more characters of base64, for as long as such lines go on. Cost: O(characters).
    """
    ends = [number for number, line in enumerate(lines) if _END.search(line)]
    number = 0
    while number < len(lines):
        line = lines[number]
        begin = _BEGIN.search(line)
        if begin is not None:
            block, number = _block(lines, number, begin.start(), ends)
            yield from block
        elif _OPEN.search(line):  # a certificate or a public key: its lines are nobody's secret
            number = _past(_KEY_TAIL, lines, number + 1)
        elif (stop := _past(_KEY_LINE, lines, number)) > number:
            closed = stop < len(lines) and _END.search(lines[_past_tail(lines, stop) - 1]) is not None
            text = "".join(lines[number:stop])
            # neither hex, nor of one case only, nor without digits: a table of sums, a ruler
            mixed = text not in (text.lower(), text.upper()) and any(map(str.isdigit, text))
            if closed or (stop - number >= _RUN and mixed):
                stop = _past_tail(lines, stop)
                yield from _whole_lines(lines, range(number, stop), "key-lines")
            number = stop
        else:
            end = _END.match(line.lstrip())
            if end is not None and not line.lstrip().startswith("Private-"):
                yield Secret(number, 0, len(line), "private-key")
            number += 1


def _block(lines: Sequence[str], first: int, start: int, ends: Sequence[int]) -> tuple[list[Secret], int]:
    """A key from its first line on, and the line after it."""
    at = bisect_left(ends, first)
    last = ends[at] if at < len(ends) else len(lines)
    if last == first:
        end = _END.search(lines[first], start)
        if end is not None:
            return [Secret(first, start, end.end(), "private-key")], first + 1
        last = ends[at + 1] if at + 1 < len(ends) else len(lines)
    head = Secret(first, start, len(lines[first]), "private-key")
    if last < len(lines) and last - first <= MOST_KEY_LINES:
        end = _END.search(lines[last])
        tail = Secret(last, 0, end.end() if end else len(lines[last]), "private-key")
        return [head, *_whole_lines(lines, range(first + 1, last), "private-key"), tail], last + 1
    stop = _past_base64(lines, first + 1)
    return [head, *_whole_lines(lines, range(first + 1, stop), "private-key")], stop


def _past_base64(lines: Sequence[str], number: int) -> int:
    """The line after the last of a key that has no end in sight: past its base64, and the rest of it."""
    stop = number
    while True:
        near = range(stop, min(stop + _MOST_BETWEEN + 1, len(lines)))
        found = next((at for at in near if _BASE64.search(lines[at])), None)
        if found is None or any(len(lines[at].strip()) > _LONGEST_BETWEEN for at in range(stop, found)):
            break
        stop = found + 1
    if stop < len(lines) and _is_rest(lines, stop, number):
        stop += 1
    return stop


def _is_rest(lines: Sequence[str], at: int, first: int) -> bool:
    """Whether this line is a key's short last one: wrapped as the one before it."""
    if _KEY_TAIL.match(lines[at]):
        return True
    full = _BASE64.search(lines[at - 1]) if at > first else None
    if full is None:
        return False
    before = "[0-9]+".join(map(re.escape, _NUMBER.split(lines[at - 1][: full.start()])))
    after = re.escape(lines[at - 1][full.end() :])
    return re.fullmatch(rf"{before}[A-Za-z0-9+/]++={{0,2}}{after}", lines[at], re.DOTALL) is not None


def _whole_lines(lines: Sequence[str], numbers: Iterable[int], kind: str) -> list[Secret]:
    return [Secret(number, 0, len(lines[number]), kind) for number in numbers if lines[number].strip()]


def _past(form: re.Pattern[str], lines: Sequence[str], number: int) -> int:
    """The first line from here on that is not of this form."""
    while number < len(lines) and form.match(lines[number]):
        number += 1
    return number


def _past_tail(lines: Sequence[str], number: int) -> int:
    """Past the short last line of a block and the word that ends it."""
    if number < len(lines) and _KEY_TAIL.match(lines[number]) and not lines[number].strip().isalpha():
        number += 1
    if number < len(lines) and _END.search(lines[number]):
        number += 1
    return number
