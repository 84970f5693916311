"""Secrets by their forms: found, hidden, put back; and what only looks like one."""

from __future__ import annotations

import string
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.text.redact import MARKER, MarkerDamaged, SecretRedactor, secrets
from orchestrator.core.text.secrets import Secret
from tests.core.text.secret_samples import LONG, SHAPES

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
    *(
        ("encoded-private-key", b64encode(f"-----BEGIN {kind}-----\n{LONG}\n".encode()).decode())
        for kind in ("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY", "OPENSSH PRIVATE KEY")
    ),
    ("encoded-private-key", b64encode(f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{LONG}\n".encode()).decode()),
    ("hugging-face-token", "hf_" + string.ascii_letters[:34]),
    ("digitalocean-token", "dop_v1_" + HEX),
    ("sendgrid-key", "SG." + LONG[:22] + "." + LONG[:43]),
    ("shopify-token", "shpat_" + HEX[:32]),
    ("vault-token", "hvs." + LONG[:24]),
    ("telegram-token", "123456789:AA" + LONG[:33]),
    ("age-key", "AGE-SECRET-KEY-1" + (UPPER * 2)[:58]),
    ("azure-key", "abc8Q~" + LONG[:34]),
    ("slack-token", "xoxd-" + LONG[:30]),
    ("hugging-face-token", "hf_" + LONG[:34]),
    ("groq-key", "gsk_" + LONG[:52]),
    ("xai-key", "xai-" + LONG[:80]),
    ("perplexity-key", "pplx-" + LONG[:48]),
    ("replicate-token", "r8_" + LONG[:37]),
    ("docker-token", "dckr_pat_" + LONG[:27]),
    ("figma-token", "figd_" + LONG[:40]),
    ("linear-key", "lin_api_" + LONG[:40]),
    ("notion-token", "ntn_" + LONG[:46]),
    ("notion-token", "secret_" + LONG[:43]),
    ("databricks-token", "dapi" + HEX[:32]),
    ("supabase-key", "sbp_" + HEX[:40]),
    ("planetscale-token", "pscale_tkn_" + LONG[:43]),
    ("planetscale-token", "pscale_pw_" + LONG[:43]),
    ("discord-token", "MT" + LONG[:22] + ".Gx1abc." + LONG[:38]),
    ("mailgun-key", "key-" + HEX[:32]),
    ("key-line", "MC4CAQAwBQYDK2VwBCIEI" + LONG[:43]),
    ("key-line", "b3BlbnNzaC1rZXktdjEA" + LONG[:50]),
    ("key-line", "MHcCAQEEI" + LONG[:55]),
    ("key-line", "MIIEpAIBAAKCAQEA" + LONG[:48]),
    ("key-line", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" + LONG[:32]),
]


@pytest.mark.parametrize("around", ['key = "{}"', "{}", "  - {} # prod", "https://x:{}@host/"], ids=range(4))
@pytest.mark.parametrize(("kind", "token"), TOKENS, ids=[f"{k} {n}" for n, (k, _) in enumerate(TOKENS)])
def test_a_token_is_hidden_whole_and_nothing_else(kind: str, token: str, around: str) -> None:
    line = around.format(token)
    (found,) = secrets([line])
    assert (found.kind, line[found.start : found.end]) == (kind, token)
    (hidden,) = SecretRedactor([line]).hide([line])
    assert hidden == around.format(f"[redacted:{kind}#1]")


@pytest.mark.parametrize(
    ("line", "secret", "kind"),
    [
        pytest.param('aws_secret_access_key = "{}"', LONG[:40], "aws-secret-key", id="aws secret"),
        pytest.param("AWS_SECRET_ACCESS_KEY={}", LONG[5:45], "aws-secret-key", id="aws secret in a .env"),
        pytest.param("AccountName=x;AccountKey={};End=y", LONG[:86] + "==", "azure-key", id="azure storage"),
        pytest.param("SecretAccessKey: {}", LONG[3:43], "aws-secret-key", id="aws secret in YAML"),
        pytest.param('"SecretAccessKey": "{}",', LONG[3:43], "aws-secret-key", id="aws secret in JSON"),
        pytest.param('{{"aws_secret_access_key" : "{}"}}', LONG[:40], "aws-secret-key", id="aws secret in one object"),
        pytest.param('put("AWS_SECRET_ACCESS_KEY", "{}")', LONG[:40], "aws-secret-key", id="aws secret in a call"),
        pytest.param("<SecretAccessKey>{}</SecretAccessKey>", LONG[:40], "aws-secret-key", id="aws secret in XML"),
        pytest.param('{{"kty": "OKP", "d":"{}", "x": "1"}}', LONG[:43], "json-web-key", id="a JWK's private part"),
        pytest.param('  "dp": "{}",', LONG[:86], "json-web-key", id="another, on a line of its own"),
        pytest.param("Authorization: Bearer {}", LONG[:30], "authorization", id="a header"),
        pytest.param('"Authorization": "Basic {}"', LONG[:30] + "==", "authorization", id="a header in JSON"),
        pytest.param("postgres://app:{}@db:5432/x", "hunter2;" + LONG[:40], "url-password", id="in a URL"),
        pytest.param("TWILIO_AUTH_TOKEN={}", HEX[:32], "twilio-key", id="twilio's auth token"),
        pytest.param("twilio(key='{}')", "SK" + HEX[:32], "twilio-key", id="twilio's API key"),
        pytest.param("curl -u AC" + HEX[:32] + ":{} x", HEX[1:33], "twilio-key", id="twilio's pair"),
        pytest.param("a=1&k={}&b=2", "sk%2Dant%2Dapi03%2D" + LONG[:60], "anthropic-key", id="percent form"),
        pytest.param("next=%2Fx%3Fk%3D{}%26b", "ghp%5F" + LONG[:36], "github-token", id="percent form around it too"),
        pytest.param("https://x.blob/y?sv=1&sig={}&se=2", LONG[:44] + "%3D", "azure-key", id="azure sas"),
    ],
)
def test_of_a_setting_only_the_value_is_hidden(line: str, secret: str, kind: str) -> None:
    start, end = (part.replace("{{", "{").replace("}}", "}") for part in line.split("{}"))
    (hidden,) = SecretRedactor().hide([start + secret + end])
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
        pytest.param("gsk_" + "shared_key_store_of_all_the_groups", id="words after gsk_"),
        pytest.param("xai-" + LONG[:30], id="short after xai-"),
        pytest.param("mpplx-" + LONG[:48], id="inside another word"),
        pytest.param("r8_" + LONG[:36], id="r8_, one short"),
        pytest.param("r8_" + LONG[:38], id="r8_, one long"),
        pytest.param("dckr_pat_of_mine", id="a name of a docker token"),
        pytest.param("figd_" + LONG[:20], id="figd_, short"),
        pytest.param("lin_api_" + LONG[:20], id="lin_api_, short"),
        pytest.param("secret_" + string.ascii_letters[:43], id="secret_ and letters alone"),
        pytest.param("secret_" + LONG[:30], id="secret_, short"),
        pytest.param("ntn_" + LONG[:20], id="ntn_, short"),
        pytest.param("dapi" + HEX[:31], id="dapi, one short"),
        pytest.param("sbp_" + HEX[:39], id="sbp_, one short"),
        pytest.param("pscale_tkn_name", id="a name of a planetscale token"),
        pytest.param("NotificationServiceFactory.create.withAllTheListenersOfTheWindow2", id="a call, as discord's"),
        pytest.param("cache-key-" + HEX[:32], id="a cache key with a sum"),
        pytest.param("key-" + HEX[:40], id="key- and a git hash"),
        pytest.param("SK" + HEX[:32], id="twilio's form without its name"),
        pytest.param("twilio==9.2.1 --hash=sha256:" + HEX, id="twilio in a lock file"),
        pytest.param('"twilio": {"integrity": "sha512-' + LONG[:80] + '=="}', id="twilio in package-lock"),
        pytest.param("SecretAccessKey: !Ref Secret", id="a template's reference"),
        pytest.param("SecretAccessKey: ${AWS_SECRET_ACCESS_KEY}", id="a variable"),
        pytest.param('<path d="' + "M10 20L30 40" * 9 + '"/>', id="an SVG path"),
        pytest.param('{"d": "' + "M10,20L30.5,40" * 9 + '"}', id="an SVG path in JSON"),
        pytest.param('{"id": "' + LONG[:43] + '"}', id="an id in JSON"),
        pytest.param("Authorization: Bearer <your token here>", id="a placeholder in a header"),
        pytest.param("Authorization: Bearer ${TOKEN_OF_SERVICE_1}", id="a variable in a header"),
        pytest.param("Authorization: Bearer YOUR_API_TOKEN_GOES_HERE", id="words in a header"),
        pytest.param("https://example.com:8080/a@b", id="a port and an at sign"),
        pytest.param("https://{user}:{password}@example.com/", id="a template of a URL"),
        pytest.param("https://%s:%s@example.com/", id="a format of a URL"),
        pytest.param("https://user@example.com:443/x", id="a URL with a user alone"),
        pytest.param("git@github.com:owner/repository-with-a-name.git", id="an ssh remote"),
        pytest.param("MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA" + LONG[:20], id="a public key's first line"),
        pytest.param("AAAAC3NzaC1lZDI1NTE5AAAAI" + LONG[:43], id="an ssh public key"),
        pytest.param("sha512-" + LONG[:86] + "==", id="a sum in a lock file"),
        pytest.param("integrity=sha384-" + LONG[:64], id="a page's integrity"),
        pytest.param("!function(e,t){var n=e.d.p.q,r=t.MNO" + "(a,b,c)" * 9 + "}", id="minified code"),
        pytest.param("https://h/?q=%20%2D%5F" + "%E6%97%A5" * 9, id="a percent form of words"),
    ],
)
def test_a_neighbour_is_left_alone(line: str) -> None:
    assert secrets([line]) == ()
    assert SecretRedactor([line]).hide([line]) == (line,)


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
    veil = SecretRedactor(lines)
    hidden = veil.hide(lines)
    assert len(hidden) == len(lines)
    assert not any(body in line for body in BODY for line in hidden)
    assert {at for at, line in enumerate(hidden) if not MARKER.search(line)} == plain
    assert veil.restore(hidden, allowed=hidden) == tuple(lines)


HEAD, *_, END = PRIVATE


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "end out of sight"])
def test_a_key_is_hidden_in_whatever_its_lines_are_wrapped(shape: str, ended: bool) -> None:
    key = [HEAD, *BODY, "Zm9v+/==", *([END] if ended else [])]
    lines = ["x = 1", *map(shape.format, key), "y = 2", "def main() -> None:"]
    veil = SecretRedactor(lines)
    hidden = veil.hide(lines)
    assert not any(word in line for word in (*BODY, "Zm9v", "PRIVATE") for line in hidden)
    assert (hidden[0], *hidden[-2:]) == (lines[0], *lines[-2:])
    assert veil.restore(hidden, allowed=hidden) == tuple(lines)


def test_a_key_that_lost_its_end_goes_on_over_headers_and_blank_lines() -> None:
    lines = [HEAD, "Proc-Type: 4,ENCRYPTED", "DEK-Info: x", "", *BODY[:2], "", *BODY[2:], "", "", "", "", "", "plain"]
    hidden = SecretRedactor(lines).hide(lines)
    assert not any(body in line for body in BODY for line in hidden)
    assert hidden[-1] == "plain"


def test_after_a_mention_of_a_key_the_text_goes_on() -> None:
    lines = [f'if text.startswith("{HEAD}"):', "    return load(text)", "", "def other() -> None:", "    pass"]
    assert SecretRedactor(lines).hide(lines)[1:] == tuple(lines[1:])


def test_lines_that_are_known_to_be_a_keys_are_hidden() -> None:
    """A key of which the lines in sight do not tell that they are one."""
    lines = ["- " + BODY[0][20:], "- Zm9v", "x"]
    keys = [Secret(0, 0, len(lines[0]), "private-key"), Secret(1, 0, len(lines[1]), "private-key")]
    assert secrets(lines) == ()
    veil = SecretRedactor(lines)
    hidden = veil.hide(lines, keys)
    assert hidden == ("[redacted:private-key#1]", "[redacted:private-key#2]", "x")
    assert veil.restore(hidden, allowed=hidden) == tuple(lines)


def test_certificates_and_sums_are_nobodys_secret() -> None:
    body = ["MIIDdzCCAl+gAwIBAgIE" + BODY[0][20:], *(LONG[n : n + 64] for n in range(5))]
    certificate = ["-----BEGIN CERTIFICATE-----", *body, "-----END CERTIFICATE-----"]
    sums = [HEX[n:] + HEX[:n] for n in range(8)]
    encoded = b64encode("\n".join(certificate).encode()).decode()
    assert secrets(certificate) == secrets([f"tls.crt: {encoded}"]) == secrets(sums) == ()


def test_one_secret_has_one_marker_and_another_has_another() -> None:
    one, other = "npm_" + LONG[:36], "npm_" + LONG[1:37]
    assert SecretRedactor().hide([f"{one} {other}", one]) == (
        "[redacted:npm-token#1] [redacted:npm-token#2]",
        "[redacted:npm-token#1]",
    )


def test_a_marker_that_the_file_holds_itself_is_not_given_out() -> None:
    lines = ["[redacted:npm-token#1]", "npm_" + LONG[:36]]
    veil = SecretRedactor(lines)
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
    veil = SecretRedactor()
    hidden = veil.hide(["npm_" + LONG[:36]])
    with pytest.raises(MarkerDamaged):
        veil.restore([said], allowed=hidden)


def test_a_secret_comes_back_only_where_it_stood() -> None:
    veil = SecretRedactor()
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
    veil = SecretRedactor(lines)
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
        "twilio",
        "secret_",
        '"d":"',
        "a://",
        "a://b:",
        "Authorization: Bearer ",
        "%2D",
        "MTabc1",
        "%",
    ],
)
def test_the_work_grows_with_the_text_and_no_faster(unit: str) -> None:
    """Counted in regex steps it can't be; a quadratic search of this many characters takes minutes."""
    line = unit * (150_000 // len(unit))
    SecretRedactor().hide([line, *([unit * 5] * 5_000)])
