"""The language of a file, by its name alone."""

from __future__ import annotations

from typing import Final

from orchestrator.core.ids import WorkspacePath

_SUFFIXES: Final = {
    "python": ".py .pyi .pyw",
    "javascript": ".js .mjs .cjs .jsx",
    "typescript": ".ts .mts .cts",
    "tsx": ".tsx",
    "go": ".go",
    "rust": ".rs",
    "java": ".java",
    "c": ".c .h",
    "cpp": ".cpp .cc .cxx .hpp .hh .hxx .ipp .inl",
    "c-sharp": ".cs .csx",
    "ruby": ".rb .rake .gemspec .ru",
    "php": ".php .phtml",
    "bash": ".sh .bash .zsh .ksh",
    "json": ".json .jsonc .geojson .webmanifest",
    "yaml": ".yaml .yml",
    "toml": ".toml",
    "html": ".html .htm .xhtml",
    "css": ".css",
    "markdown": ".md .markdown .mdown",
}
_NAMES: Final = {
    "ruby": "Rakefile Gemfile Vagrantfile Podfile",
    "bash": ".bashrc .bash_profile .profile .zshrc PKGBUILD",
    "toml": "Cargo.lock poetry.lock uv.lock Pipfile",
    "json": ".babelrc .eslintrc composer.lock",
    "yaml": ".clang-format .clang-tidy CITATION.cff",
}

LANGUAGES: Final = tuple(_SUFFIXES)
"""The grammars by name; `tsx` comes with TypeScript's wheel."""

_BY_SUFFIX = {suffix: language for language, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
_BY_NAME = {name: language for language, names in _NAMES.items() for name in names.split()}


def language_of(path: WorkspacePath) -> str | None:
    """The grammar that a path's name asks for; None where there is none for it. Case matters in whole names only."""
    name = path.rpartition("/")[2]
    if name in _BY_NAME:
        return _BY_NAME[name]
    stem, dot, suffix = name.rpartition(".")
    return _BY_SUFFIX.get(f".{suffix.lower()}") if stem and dot else None
