"""Secrets by their forms: found, hidden, put back; and what only looks like one."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.text.redact import MARKER, MarkerDamaged, Veil, secrets

LONG = "".join(map("".join, zip(string.ascii_letters, "4907135682" * 6, strict=False))) * 2
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
HEX = "0123456789abcdef" * 4
BODY = ["MIIEpAIBAAKCAQEA" + LONG[n : n + 48] for n in range(6)]

# Each is put together here, so that this file holds nothing that a scanner would take for a secret.
TOKENS = [
    ("aws-access-key", "AKIA" + UPPER[:16]),
    ("aws-access-key", "ASIA" + UPPER[8:24]),
    ("github-token", "ghp_" + LONG[:36]),
    ("github-token", "github_pat_" + LONG[:22] + "_" + LONG[:59]),
    ("gitlab-token", "glpat-" + LONG[:20]),
    ("slack-token", "xoxb-" + "1234567890-" + LONG[:24]),
    ("slack-token", "hooks.slack.com/services/T0000/B0000/" + LONG[:24]),
    ("stripe-key", "sk_live_" + LONG[:24]),
    ("stripe-key", "whsec_" + LONG[:32]),
    ("google-key", "AIza" + LONG[:35]),
    ("google-key", "GOCSPX-" + LONG[:28]),
    ("anthropic-key", "sk-ant-api03-" + LONG[:90] + "AA"),
    ("openai-key", "sk-proj-" + LONG[:60]),
    ("openai-key", "sk-" + LONG[:48]),
    ("npm-token", "npm_" + LONG[:36]),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc" + LONG[:80]),
    ("json-web-token", "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0." + LONG[:43]),
    ("hugging-face-token", "hf_" + string.ascii_letters[:34]),
    ("digitalocean-token", "dop_v1_" + HEX),
    ("sendgrid-key", "SG." + LONG[:22] + "." + LONG[:43]),
    ("shopify-token", "shpat_" + HEX[:32]),
    ("vault-token", "hvs." + LONG[:24]),
    ("telegram-token", "123456789:AA" + LONG[:33]),
    ("age-key", "AGE-SECRET-KEY-1" + (UPPER * 2)[:58]),
    ("azure-key", "abc8Q~" + LONG[:34]),
]


@pytest.mark.parametrize("around", ['key = "{}"', "{}", "  - {} # prod", "https://x:{}@host/"], ids=range(4))
@pytest.mark.parametrize(("kind", "token"), TOKENS, ids=[f"{k} {n}" for n, (k, _) in enumerate(TOKENS)])
def test_a_token_is_hidden_whole_and_nothing_else(kind: str, token: str, around: str) -> None:
    line = around.format(token)
    (found,) = secrets([line])
    assert (found.kind, line[found.start : found.end]) == (kind, token)
    (hidden,) = Veil([line]).hide([line])
    assert hidden == around.format(f"[redacted:{kind}#1]")


@pytest.mark.parametrize(
    ("line", "secret", "kind"),
    [
        pytest.param('aws_secret_access_key = "{}"', LONG[:40], "aws-secret-key", id="aws secret"),
        pytest.param("AWS_SECRET_ACCESS_KEY={}", LONG[5:45], "aws-secret-key", id="aws secret in a .env"),
        pytest.param("AccountName=x;AccountKey={};End=y", LONG[:86] + "==", "azure-key", id="azure storage"),
        pytest.param("https://x.blob/y?sv=1&sig={}&se=2", LONG[:44] + "%3D", "azure-key", id="azure sas"),
    ],
)
def test_of_a_setting_only_the_value_is_hidden(line: str, secret: str, kind: str) -> None:
    (hidden,) = Veil().hide([line.format(secret)])
    start, end = line.split("{}")
    assert hidden.startswith(start)
    assert MARKER.search(hidden)[1] == kind  # type: ignore[index]
    assert hidden.endswith(end)
    assert secret[:40] not in hidden


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("AKIA" + UPPER[:15], id="one short"),
        pytest.param("xAKIA" + UPPER[:16], id="inside a word"),
        pytest.param("AKIA" + UPPER[:16] + "ZZ", id="one long"),
        pytest.param("AKIA" + UPPER[:16].lower(), id="lower case"),
        pytest.param("ghp_short", id="a prefix and little more"),
        pytest.param("mask-" + LONG[:40], id="ends with sk-"),
        pytest.param("task-ant-colony-optimization-problem", id="words"),
        pytest.param("sk_test_ = settings.key", id="a name"),
        pytest.param("risk-" + "a" * 40, id="risk-"),
        pytest.param(HEX, id="a sha256"),
        pytest.param("123e4567-e89b-12d3-a456-426614174000", id="a uuid"),
        pytest.param("data:image/png;base64," + LONG, id="an image"),
        pytest.param("eyJhbGciOiJIUzI1NiJ9", id="a token's head alone"),
        pytest.param("npm_config_registry=https://registry.npmjs.org/some/long/path/here", id="npm's settings"),
        pytest.param("secret_access_key = os.environ['AWS_SECRET_ACCESS_KEY']", id="no value"),
        pytest.param("-----BEGIN PUBLIC KEY-----", id="a public key"),
        pytest.param("# never commit -----BEGIN anything", id="words about keys"),
        pytest.param("[redacted:aws-access-key#1]", id="a marker"),
    ],
)
def test_a_neighbour_is_left_alone(line: str) -> None:
    assert secrets([line]) == ()
    assert Veil([line]).hide([line]) == (line,)


PRIVATE = ["-----BEGIN RSA PRIVATE " + "KEY-----", *BODY, "Zm9v==", "-----END RSA PRIVATE " + "KEY-----"]


@pytest.mark.parametrize(
    ("lines", "plain"),
    [
        pytest.param(["a", *PRIVATE, "b"], {0, len(PRIVATE) + 1}, id="whole"),
        pytest.param(["a", *PRIVATE[:4]], {0}, id="the end is out of sight"),
        pytest.param([*PRIVATE[3:], "b"], {len(PRIVATE) - 3}, id="the beginning is out of sight"),
        pytest.param([*PRIVATE[-3:], "b"], {3}, id="only the last lines"),
        pytest.param(["a", *BODY[:4], "b"], {0, 5}, id="only the middle"),
        pytest.param(['k = """' + PRIVATE[0], *PRIVATE[1:-1], PRIVATE[-1] + '"""'], set(), id="in a string"),
        pytest.param([f'  "{line}\\n"' for line in PRIVATE], set(), id="a string for each line"),
        pytest.param(["# " + line for line in PRIVATE], set(), id="in comments"),
        pytest.param(['k = "' + "\\n".join(PRIVATE) + '"'], set(), id="on one line"),
        pytest.param([line.replace("RSA", "OPENSSH") for line in PRIVATE], set(), id="openssh"),
    ],
)
def test_a_private_key_is_hidden_and_no_line_moves(lines: list[str], plain: set[int]) -> None:
    veil = Veil(lines)
    hidden = veil.hide(lines)
    assert len(hidden) == len(lines)
    assert not any(body in line for body in BODY for line in hidden)
    assert {at for at, line in enumerate(hidden) if not MARKER.search(line)} == plain
    assert veil.restore(hidden, allowed=hidden) == tuple(lines)


def test_certificates_and_sums_are_nobodys_secret() -> None:
    certificate = ["-----BEGIN CERTIFICATE-----", *BODY, "-----END CERTIFICATE-----"]
    sums = [HEX[n:] + HEX[:n] for n in range(8)]
    assert secrets(certificate) == secrets(sums) == ()


def test_one_secret_has_one_marker_and_another_has_another() -> None:
    one, other = "npm_" + LONG[:36], "npm_" + LONG[1:37]
    assert Veil().hide([f"{one} {other}", one]) == (
        "[redacted:npm-token#1] [redacted:npm-token#2]",
        "[redacted:npm-token#1]",
    )


def test_a_marker_that_the_file_holds_itself_is_not_given_out() -> None:
    lines = ["[redacted:npm-token#1]", "npm_" + LONG[:36]]
    veil = Veil(lines)
    hidden = veil.hide(lines)
    assert hidden == ("[redacted:npm-token#1]", "[redacted:npm-token#2]")
    assert veil.restore(hidden, allowed=hidden) == tuple(lines)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("[redacted:npm-token#2]", id="made up"),
        pytest.param("[redacted:openai-key#1]", id="of another kind"),
        pytest.param("[redacted:npm-token]", id="without its number"),
        pytest.param("[REDACTED: npm-token#1]", id="rewritten"),
        pytest.param("redacted:npm-token#1", id="without its brackets"),
        pytest.param("[redacted:npm-token#1", id="cut off"),
    ],
)
def test_a_damaged_marker_is_refused(said: str) -> None:
    veil = Veil()
    hidden = veil.hide(["npm_" + LONG[:36]])
    with pytest.raises(MarkerDamaged):
        veil.restore([said], allowed=hidden)


def test_a_secret_comes_back_only_where_it_stood() -> None:
    veil = Veil()
    (mine,) = veil.hide(["npm_" + LONG[:36]])
    with pytest.raises(MarkerDamaged):
        veil.restore([mine], allowed=["another region"])
    assert veil.restore(["x " + mine], allowed=[mine]) == ("x npm_" + LONG[:36],)


PIECES = st.one_of(
    st.sampled_from([token for _, token in TOKENS] + PRIVATE),
    st.text(alphabet=st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=20),
    st.sampled_from(["=", " ", "-", "_", ".", "eyJ", "sk-", "[redacted:npm-token#1]", '"']),
)
TEXTS = st.lists(st.lists(PIECES, max_size=5).map("".join), max_size=12)


@given(TEXTS)
def test_nothing_that_is_found_remains_and_all_comes_back(lines: list[str]) -> None:
    veil = Veil(lines)
    hidden = veil.hide(lines)
    assert len(hidden) == len(lines)
    assert secrets(hidden) == ()
    if not any("redacted" in line for line in lines):
        assert veil.restore(hidden, allowed=hidden) == tuple(lines)


@pytest.mark.parametrize(
    "unit",
    [
        "eyJabcdefgh-",
        "eyJabcdefgh.",
        "sk-",
        "AKIA",
        "-----BEGIN ",
        "A",
        "A1b",
        "xoxb-",
        "&sig=",
        "aws_secret_key=",
        "[redacted:",
    ],
)
def test_the_work_grows_with_the_text_and_no_faster(unit: str) -> None:
    """Counted in regex steps it can't be; a quadratic search of this many characters takes minutes."""
    line = unit * (400_000 // len(unit))
    Veil().hide([line, *([unit * 5] * 20_000)])
