from __future__ import annotations

import random
from itertools import product
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.events.sessions import AgentClass
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import ancestors, fold_pattern, folded
from orchestrator.core.policy.evaluate import evaluate
from orchestrator.core.policy.matcher import Matcher, PathRule
from orchestrator.core.policy.rules import (
    ACTIONS,
    CHANGES,
    Action,
    Allow,
    Answer,
    Deny,
    NeedApproval,
    Policy,
    Request,
    Rule,
)
from tests.core.policy.shipped import DEFAULT, READ_ONLY, answer, policy

EVERYTHING = policy("allow " + ",".join(ACTIONS) + " **")
READS: tuple[Action, ...] = ("list", "read", "search")


# --- the shipped policies, action by class ---

TABLE: dict[Action, tuple[Answer, Answer]] = {
    "list": ("allow", "allow"), "read": ("allow", "allow"), "search": ("allow", "allow"),
    "write": ("allow", "deny"), "create": ("allow", "deny"), "delete": ("allow", "deny"), "move": ("allow", "deny"),
    "run": ("ask", "deny"), "revert": ("allow", "deny"), "review": ("deny", "deny"), "approve": ("deny", "deny"),
}  # fmt: skip


@pytest.mark.parametrize("path", [".", "a.py", "src/deep/a.py"])
@pytest.mark.parametrize(("action", "agent_class"), list(product(ACTIONS, get_args(AgentClass))))
def test_shipped(action: Action, agent_class: AgentClass, path: str) -> None:
    default, read_only = TABLE[action]
    if action == "review" and agent_class in ("review", "person"):
        default = "allow"
    if action == "approve" and agent_class == "person":
        default = read_only = "allow"  # who has the approver code
    assert answer(DEFAULT, action, path, agent_class=agent_class) == default
    assert answer(READ_ONLY, action, path, agent_class=agent_class) == read_only


@pytest.mark.parametrize(
    ("rules", "agent_class", "verdict"),
    [
        pytest.param("deny", "person", "deny", id="a rule denies a person"),
        pytest.param("ask", "person", "allow", id="the code is a person's yes"),
        pytest.param("", "person", "allow", id="a person whom no rule names"),
        pytest.param("allow", "review", "allow", id="a rule allows a reviewer"),
        pytest.param("ask", "review", "deny", id="asking a reviewer's person"),
        pytest.param("", "review", "deny", id="never by default"),
        pytest.param("allow", "cloud", "deny", id="no other agent"),
        pytest.param("allow", "local", "deny", id="nor a local one"),
    ],
)
@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
def test_who_approves(rules: str, agent_class: AgentClass, verdict: Answer, default: Answer) -> None:
    asked = policy(*([f"{rules} approve **"] if rules else []), default=default)
    assert answer(asked, "approve", "a.py", agent_class=agent_class) == verdict


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        pytest.param({}, "deny", id="never by default"),
        pytest.param({"client:x": "allow"}, "allow", id="a rule names it"),
        pytest.param({"client:*": "ask"}, "ask", id="everybody's client, by the code"),
        pytest.param({"client:x": "allow", "client:*": "ask"}, "ask", id="the stricter of both"),
        pytest.param({"client:y": "allow"}, "deny", id="another's client"),
        pytest.param({"*": "allow"}, "deny", id="what is for all lets nobody"),
        pytest.param({"*": "ask"}, "deny", id="nor has it anybody asked"),
        pytest.param({"x": "allow", "class:cloud": "allow", "class:person": "allow"}, "deny", id="nor the agent's own"),
        pytest.param({"client:x": "allow", "*": "deny"}, "deny", id="what is for all denies"),
    ],
)
@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
def test_the_person_before_a_client(rules: dict[str, Answer], verdict: Answer, default: Answer) -> None:
    made = (
        Rule(name=f"r{at}", agents=(who,), actions=("approve",), paths=("**",), verdict=said)
        for at, (who, said) in enumerate(rules.items())
    )
    asked = msgspec.structs.replace(DEFAULT, default=default, rules=tuple(made))
    assert answer(asked, "approve", "a.py", agent="client:x") == verdict


def test_the_work_of_others_asks() -> None:
    assert answer(DEFAULT, "delete", "a.py", others_work=True) == "ask"
    assert answer(DEFAULT, "move", "a.py", others_work=True) == "ask"
    assert answer(DEFAULT, "revert", "a.py", others_work=True) == "ask"
    assert answer(READ_ONLY, "revert", "a.py", others_work=True) == "deny"
    assert answer(DEFAULT, "write", "a.py", others_work=True) == "allow"


GIT = [
    ".git", ".git/config", ".git/hooks/pre-commit", "sub/.git", "sub/module/.git/config",       # 42
    ".GIT/hooks/x", ".Git/config", "a/.gIT",                                                    # 44
    ".g\u200cit/config", ".git\u00ad/config", ".g\u202eit/x", ".git\ufe0f/x",                   # 46
    "\uff0egit/config", "\uff0e\uff47\uff49\uff54/hooks/x", ".\u24d6it/x",                      # 47
    ".git./config", ".git /config", ".git. ./x", "git~1/config", "GIT~1",
    ".git::$INDEX_ALLOCATION/config", ".git\\config", ".../.GIT/x",
]  # fmt: skip


@pytest.mark.parametrize("path", GIT)
@pytest.mark.parametrize("shipped", [DEFAULT, READ_ONLY, EVERYTHING])
def test_rows_42_to_47_nothing_changes_git(shipped: Policy, path: str) -> None:
    for action in CHANGES:
        verdict = evaluate(shipped, Request("claude", "cloud", action, WorkspacePath(path)))
        assert isinstance(verdict, Deny)
        if shipped is DEFAULT:
            assert verdict.rule == "builtin.git"
    secret = shipped is not EVERYTHING and path.lower().endswith("config")  # remotes' addresses may hold tokens
    assert answer(shipped, "read", path) == ("deny" if secret else "allow")


@pytest.mark.parametrize("path", [".gitignore", "git/x", ".github/CODEOWNERS", "a.git.md", "git~2", ".gi/t"])
def test_what_is_not_git(path: str) -> None:
    assert answer(DEFAULT, "write", path) == "allow"


@pytest.mark.parametrize(
    "path",
    [
        ".nfs0000000000a1b2", "src/.nfs01", "a.py.swp", ".a.py.swp", ".a.py.swo", ".a.py.swn", ".#a.py", "#a.py#",
        ".~lock.a.odt#", ".wh.a.py", "src/.A.PY.SWP",
    ],
)  # fmt: skip
def test_row_40_editor_files(path: str) -> None:
    for action in CHANGES:
        verdict = evaluate(EVERYTHING, Request("a", "cloud", action, WorkspacePath(path)))
        assert isinstance(verdict, Deny)
        assert verdict.rule == "builtin.editor_files"


@pytest.mark.parametrize("path", ["film.swf", "a.swift", "a#b", "# notes.md", "nfs.md"])
def test_row_40_others_are_free(path: str) -> None:
    assert answer(DEFAULT, "write", path) == "allow"


TOOL_CODE = [
    ".gitmodules", ".gitattributes", "sub/.gitattributes",                                              # 42
    ".vscode/settings.json", ".vscode/tasks.json", ".vscode/launch.json", ".vscode/extensions.json",    # 50
    "my.code-workspace", ".idea/workspace.xml", "pkg/.vscode/settings.json",
    ".cursor/mcp.json", ".mcp.json", ".cursor/rules/a.md", ".windsurf/x", ".zed/settings.json", ".roo/x/y",     # 51
    ".cursor", ".vscode", ".claude",                                                        # a directory moved there
    ".claude/settings.json", ".claude/settings.local.json", ".claude/hooks/x.sh", ".claude/agents/a.md",        # 52
    ".claude/skills/s/SKILL.md", "CLAUDE.md", "AGENTS.md", "sub/AGENTS.md", ".github/copilot-instructions.md",
    ".bashrc", ".bash_profile", ".profile", ".zshrc", ".vimrc", ".pryrc", ".irbrc", "lib/CMakeLists.txt",
    ".eslintrc.js", ".eslintrc.cjs", ".prettierrc.js", ".prettierrc.cjs", ".mocharc.js", ".mocharc.cjs",
    "gulpfile.js", "Gruntfile.js", "Gemfile", ".bazelrc", "lib/BUILD.bazel", "lib/BUILD", "WORKSPACE",
    "SConstruct", "meson.build",
    "Makefile", "conftest.py", "tests/conftest.py", "sitecustomize.py", "x.pth", "setup.py",          # 54
    "package.json", "pip.conf", ".devcontainer/devcontainer.json", "Dockerfile",
    "pytest.ini", ".venv/lib/python3.12/site-packages/x.py", ".venv/bin/python",                        # more code
    "vite.config.js", "web/vite.config.ts", "eslint.config.mjs", "jest.config.cjs", "app/tailwind.config.ts",
    "build.gradle", "settings.gradle", "app/build.gradle.kts", "gradle.properties", "gradlew",
    "gradle/wrapper/gradle-wrapper.properties", "gradle/wrapper/gradle-wrapper.jar", "Rakefile", "Vagrantfile",
    "flake.nix", "shell.nix", "RAKEFILE", "Pytest.ini", "VITE.config.JS",
    ".agents/skills/x/SKILL.md", ".agents", ".claude-plugin/plugin.json", ".github/skills/x/SKILL.md",  # more agents
    ".github/hooks/pre.json", "sub/.github/hooks/x", ".opencode.json", "AGENT.md", "QWEN.md", ".qwen/settings.json",
    "CRUSH.md", "crush.json", ".crush.json", "WARP.md", ".goosehints", ".junie/guidelines.md", ".amazonq/rules/a.md",
    ".augment/rules/a.md", ".trae/rules/x.md", ".kilocode/mcp.json", ".openhands/microagents/x.md",
    ".factory/droids/x.md", ".rules", "pkg/.agents/skills/x/SKILL.md", "Agent.md", "crush.MD",
    ".github/workflows/ci.yml", "sub/.github/workflows/ci.yml", ".gitlab-ci.yml", ".circleci/config.yml",
    "makefile", "claude.MD", ".VSCODE/settings.json", "Package.JSON", "\uff2dakefile", "setup.py.", "Dockerfile ",
]  # fmt: skip


@pytest.mark.parametrize("path", TOOL_CODE)
def test_rows_50_to_57_tool_code_asks(path: str) -> None:
    for action in CHANGES:
        assert answer(DEFAULT, action, path) == "ask", action
        assert answer(READ_ONLY, action, path) == "deny", action
    assert [answer(DEFAULT, action, path) for action in READS] == ["allow"] * 3
    assert answer(DEFAULT, "create", path, agent_class="person") == "ask"


@pytest.mark.parametrize(
    "path",
    [
        "build/a.py", "src/workspace/a.py",
        "pyproject.toml", "src/setup_py.py", "a.md", "docs/Makefiles.md", "my_package.json",
        "config.py", "src/config.ts", "app.config.json", "src/config.js", "pytest_ini.py", "gradle.md", "rules.md",
        "agents.py", "docs/agent.rst", "src/agents/run.py", "src/hooks/useThing.ts", "skills/a.md", "crush.py",
        "junie.md", "venv.py", "factory/a.py", "src/refs/heads.py", "src/objects/a.py", "HEAD.md", "config",
    ],
)  # fmt: skip
def test_daily_files_do_not_ask(path: str) -> None:
    assert answer(DEFAULT, "write", path) == "allow"


SECRETS = [
    ".env", "app/.env", ".env.local", ".env.production", "ca.pem", "keys/server.pem", "id_rsa", "id_ed25519",
    "deploy/id_rsa.bak", ".aws/credentials", "home/.aws/credentials", ".netrc", ".kube/config", "x/.kube/config",
    "terraform.tfstate", "terraform.tfstate.backup", ".ENV", "Server.PEM", ".env.", ".env ", ".env:x", "ID_RSA",
    ".env~", "prod.env~", ".env copy", ".env copy 2", ".env-prod", ".env_local", "sub/.ENV~",           # copies of .env
    "server.key", "tls/private.KEY", "AuthKey.p8", "putty.ppk", "release.keystore", "a.jks",            # keys
    "prod.tfvars", "prod.auto.tfvars", "prod.tfvars.json",                                              # settings
    ".npmrc", "web/.npmrc", "credentials.json", "service-account.json", "service-account-prod.json",
    "service_account.json", "client_secret_1.json", "secrets.yml", "config/secrets.yaml", ".streamlit/secrets.toml",
    ".config/gh/hosts.yml", "home/.config/gh/hosts.yml", "gcloud/credentials.db",
    ".config/gcloud/legacy_credentials/x/adc.json", ".config/gcloud/application_default_credentials.json",
    ".htpasswd", ".vault-token", ".claude-orchestrator-token", "orchestrator-token", ".config/git/credentials",
    ".claude/.credentials.json", ".codex/auth.json", "auth.json", "kubeconfig", ".cargo/credentials.toml",
    ".azure/accessTokens.json", ".dockercfg", ".docker/config.json", ".s3cfg", ".boto", ".my.cnf", ".pgpass",
    ".terraformrc", "secret.json", "pass.kdbx", ".envrc", "sub/.envrc",
    ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".local/share/fish/fish_history",
    ".env.EXAMPLE",     # the exception is in lower case, and the stricter spelling counts
    "keys.pem/a.txt",   # a directory of that name
]  # fmt: skip


@pytest.mark.parametrize("path", SECRETS)
def test_row_55_secrets(path: str) -> None:
    assert [answer(DEFAULT, action, path) for action in READS] == ["allow", "deny", "deny"]
    assert [answer(READ_ONLY, action, path) for action in READS] == ["allow", "deny", "deny"]
    for action in CHANGES:
        assert answer(DEFAULT, action, path) == "ask", action
        assert answer(READ_ONLY, action, path) == "deny", action


@pytest.mark.parametrize(
    "path",
    [".git/config", "sub/.git/config", ".GIT/Config", ".git/modules/a/b/config", ".git/config.worktree",
     ".git/worktrees/w/config.worktree", ".git/credentials"],
)  # fmt: skip
def test_row_55_tokens_in_addresses_of_remotes(path: str) -> None:
    for shipped in (DEFAULT, READ_ONLY):
        assert [answer(shipped, action, path) for action in READS] == ["allow", "deny", "deny"]
        assert {answer(shipped, action, path) for action in CHANGES} == {"deny"}


@pytest.mark.parametrize("path", [".git/HEAD", ".git/refs/heads/config", "git/config", "config", ".git/hooks/config"])
def test_row_55_what_of_git_is_no_secret(path: str) -> None:
    assert answer(DEFAULT, "read", path) == "allow"


@pytest.mark.parametrize(
    "path",
    [
        ".env.example", "app/.env.sample", "ca.pem.example", "id_rsa.sample", "environment.py", "pem.py",
        "id_generator.py", "id_map/a.py", ".aws/config", "credentials", "docs/id.md",
        "credentials.py", "secrets.py", "src/secrets.ts", "credentials.rs", "keys.py", "key.go", "src/history.py",
        "service_account.py", "service-account.ts", "tokens.json", "id_card.tsx", "token.py", "hosts.yml", "env.py",
        "client_secret.py", "secrets.md", "keyboard.js", "npmrc.md", "secrets.yaml.example", "server.key.sample",
        "terraform.tfvars.example", ".npmrc.example", "credentials.json.sample", ".env-example", "gcloud/main.py",
    ],
)  # fmt: skip
def test_row_55_what_is_no_secret(path: str) -> None:
    assert answer(DEFAULT, "read", path) == "allow"
    assert answer(DEFAULT, "write", path) == "allow"


def test_the_shipped_policies_share_their_list_of_secrets() -> None:
    lists = [{rule.name: rule.paths for rule in shipped.rules} for shipped in (DEFAULT, READ_ONLY)]
    assert lists[0]["secrets-read"] == lists[0]["secrets-change"] == lists[1]["secrets-read"]


def test_row_58_the_daemons_own_state() -> None:
    guarded = EVERYTHING.guarding([WorkspacePath("var/state [1]")])
    for action in ACTIONS:
        for path in ("var/state [1]", "var/state [1]/journal.db-wal", "VAR/State [1]/x"):
            assert evaluate(guarded, Request("a", "person", action, WorkspacePath(path))) == Deny(
                "builtin.state", "the daemon's own files"
            )
        assert answer(guarded, action, "var/state 1", agent_class="review") == "allow"
        assert answer(guarded, action, "sub/var/state [1]", agent_class="review") == "allow"
        assert answer(guarded, action, "a/.orchestrator-12.tmp", agent_class="review") == "deny"


def test_a_repository_counts_whatever_its_name() -> None:
    path = WorkspacePath("innocent/a.txt")
    for action in ACTIONS:
        git = evaluate(EVERYTHING, Request("a", "review", action, path, is_git=True))
        assert isinstance(git, Deny if action in CHANGES else Allow)


def test_a_file_cannot_switch_off_what_is_built_in() -> None:
    every = policy("allow " + ",".join(ACTIONS) + " ** .git .git/** .orchestrator-*", default="allow")
    assert answer(every, "write", ".git/config") == "deny"
    assert answer(every, "read", ".orchestrator-1.tmp") == "deny"


# --- how rules add up ---


def test_deny_beats_ask_beats_allow() -> None:
    rules = policy("allow read **", "ask read *.md", "deny read secret.md")
    assert [answer(rules, "read", p) for p in ("a.py", "a.md", "secret.md")] == ["allow", "ask", "deny"]


@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
def test_nothing_matches(default: Answer) -> None:
    rules = policy("deny write a", default=default)
    assert answer(rules, "read", "a") == default
    verdict = evaluate(rules, Request("a", "cloud", "read", WorkspacePath("a")))
    assert verdict.rule == "default"
    assert isinstance(verdict, Allow) or "no rule of test matches" in verdict.reason


def test_a_verdict_names_its_rule_and_reason() -> None:
    assert evaluate(DEFAULT, Request("a", "cloud", "read", WorkspacePath(".env"))) == Deny(
        "secrets-read", "it may hold secrets, and what is read reaches a model"
    )
    assert evaluate(DEFAULT, Request("a", "cloud", "run", WorkspacePath("."))) == NeedApproval(
        "run", "a command can do anything that its user can"
    )


@pytest.mark.parametrize(
    ("selector", "agent", "agent_class", "applies"),
    [
        ("*", "x", "local", True),
        ("x", "x", "local", True),
        ("x", "xy", "local", False),
        ("X", "x", "local", False),
        ("class:local", "x", "local", True),
        ("class:local", "x", "cloud", False),
        ("class:local", "class:local", "cloud", False),
        ("person:ann", "person:ann", "person", True),
    ],
)
def test_agents(selector: str, agent: str, agent_class: AgentClass, applies: bool) -> None:
    rule = Rule(name="r", agents=(selector,), actions=("read",), paths=("**",), verdict="allow")
    rules = msgspec.structs.replace(DEFAULT, default="deny", rules=(rule,))
    assert (answer(rules, "read", "a", agent=agent, agent_class=agent_class) == "allow") is applies


GLOBS = st.lists(
    st.sampled_from(["**", "*.py", "a", "/a", "a/", "a/b", "a/**", "**/b", "B", ".git", "c*", "[a-b]", "?"]), min_size=1
)
EXCEPTIONS = st.lists(st.sampled_from(["!a", "!a/", "!a/b", "!*.py", "!b", "!C", "!a/**"]))
NAMES = st.sampled_from(["a", "b", "c", "A", "B", ".git", "x.py", "a.py", "c.", "\uff41"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda parts: WorkspacePath("/".join(parts)))
RULES = st.lists(
    st.tuples(st.sampled_from(["allow", "ask", "deny"]), GLOBS, EXCEPTIONS, st.sampled_from(["*", "x", "class:cloud"])),
    max_size=6,
).map(
    lambda drawn: [
        Rule(
            name=f"r{at}", agents=(who,), actions=("read", "write"), paths=(*globs, *exceptions),
            verdict=verdict, reason="r",  # type: ignore[arg-type]  # sampled from the three
        )
        for at, (verdict, globs, exceptions, who) in enumerate(drawn)
    ]
)  # fmt: skip


@settings(max_examples=200)
@given(RULES, PATHS, st.randoms(use_true_random=False), st.sampled_from(["read", "write"]), st.booleans())
def test_the_order_of_rules_changes_nothing(
    rules: list[Rule], path: WorkspacePath, chance: random.Random, action: Action, directory: bool
) -> None:
    request = Request("x", "cloud", action, path, directory=directory)
    first = evaluate(msgspec.structs.replace(DEFAULT, rules=tuple(rules)), request)
    chance.shuffle(rules)
    assert evaluate(msgspec.structs.replace(DEFAULT, rules=tuple(rules)), request) == first


@settings(max_examples=200)
@given(RULES, PATHS, PATHS)
def test_what_was_asked_before_changes_nothing(rules: list[Rule], before: WorkspacePath, path: WorkspacePath) -> None:
    request = Request("x", "cloud", "read", path)
    fresh = evaluate(msgspec.structs.replace(DEFAULT, rules=tuple(rules)), request)
    used = msgspec.structs.replace(DEFAULT, rules=tuple(rules), source="another")
    evaluate(used, Request("x", "cloud", "read", before))
    evaluate(used, Request("x", "cloud", "read", WorkspacePath(path + "/below")))
    assert evaluate(used, request) == fresh


@settings(max_examples=200)
@given(RULES, PATHS, st.booleans())
def test_the_sieve_keeps_back_no_rule(rules: list[Rule], path: WorkspacePath, directory: bool) -> None:
    """The quick matcher finds what asking every pattern of every rule at every level finds."""
    levels = [*((above, True) for above in ancestors(path)), (path, directory)]
    for rule in rules:
        strict = rule.verdict != "allow"
        found = []
        for fold in (False, True):
            asked = PathRule([fold_pattern(p) if fold else p for p in rule.paths], strict=strict)
            said = [asked.says("/".join(folded(at)) if fold else at, directory=is_dir) for at, is_dir in levels]
            found.append(True in said and (strict or False not in said))
        matched = bool(Matcher([rule]).matching(path, directory=directory))
        assert matched is (any(found) if strict else all(found))


@settings(max_examples=200)
@given(RULES, PATHS, st.sampled_from([str.upper, str.title, lambda name: name + ".", lambda name: name + " "]))
def test_no_spelling_is_freer_under_strict_rules(rules: list[Rule], path: WorkspacePath, respell: object) -> None:
    """Where every other spelling is judged no stricter, a rule in plain lower case holds for all of them."""
    strict = tuple(
        msgspec.structs.replace(rule, paths=tuple(g.lower() for g in rule.paths if g[0] != "!"))
        for rule in rules
        if rule.verdict != "allow"
    )
    rules_of = msgspec.structs.replace(DEFAULT, default="allow", rules=strict)
    assert callable(respell)
    plain = "/".join(part.lower().rstrip(".").replace("\uff41", "a") for part in path.split("/"))
    spelled = "/".join(respell(part) for part in plain.split("/"))
    severity = ["allow", "ask", "deny"]
    assert severity.index(answer(rules_of, "read", spelled)) >= severity.index(answer(rules_of, "read", plain))


def test_a_deep_path_is_judged() -> None:
    assert answer(DEFAULT, "write", "/".join(["d"] * 2000) + "/.git/x") == "deny"


# --- what is remembered of a path ---


def test_a_path_is_judged_anew_under_another_policy() -> None:
    """As when the policy is reloaded between two calls, and then back."""
    open_, shut = policy("allow read **"), policy("allow read **", "deny read secret/**")
    for _ in range(3):
        assert answer(open_, "read", "secret/a") == "allow"
        assert answer(shut, "read", "secret/a") == "deny"


def test_what_is_remembered_of_a_path_is_of_no_agent_action_or_kind() -> None:
    rules = policy("allow read,list a", "deny read a", "allow list b/")
    for _ in range(2):
        assert answer(rules, "read", "a") == "deny"
        assert answer(rules, "list", "a") == "allow"
        assert answer(rules, "list", "b", directory=True) == "allow"
        assert answer(rules, "list", "b") == "deny"


def test_more_paths_than_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.core.policy.evaluate.REMEMBERED", 3)
    monkeypatch.setattr("orchestrator.core.policy.matcher.REMEMBERED", 3)
    rules = policy("allow read **", "deny read *.key")
    paths = [f"d/{n}.{end}" for n in range(5) for end in ("key", "txt")]
    for _ in range(2):
        assert [answer(rules, "read", path) for path in paths] == ["deny", "allow"] * 5
