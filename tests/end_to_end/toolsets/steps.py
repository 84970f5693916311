"""The calls that are made of the originals and of ours, in order."""

from __future__ import annotations

from tests.end_to_end.toolsets.original_answers import Step

FILESYSTEM = (
    Step("allowed directories", "list_allowed_directories", {}),
    Step("a whole file", "read_text_file", {"path": "{root}/src/app.py"}),
    Step("by the old name", "read_file", {"path": "{root}/README.md"}),
    Step("no line end", "read_text_file", {"path": "{root}/docs/no_end.txt"}),
    Step("an empty file", "read_text_file", {"path": "{root}/docs/empty.txt"}),
    Step("other letters", "read_text_file", {"path": "{root}/umlauts.txt"}),
    Step("head", "read_text_file", {"path": "{root}/docs/ten.txt", "head": 3}),
    Step("head of more", "read_text_file", {"path": "{root}/docs/ten.txt", "head": 30}, "the last line keeps its end"),
    Step("tail", "read_text_file", {"path": "{root}/docs/no_end.txt", "tail": 1}),
    Step("tail with a line end", "read_text_file", {"path": "{root}/docs/ten.txt", "tail": 3}, "three lines, not two"),
    Step("head and tail", "read_text_file", {"path": "{root}/docs/ten.txt", "head": 1, "tail": 1}, "other words"),
    Step(
        "several files",
        "read_multiple_files",
        {"paths": ["{root}/README.md", "{root}/absent.txt", "{root}/docs/no_end.txt"]},
    ),
    Step("absent", "read_text_file", {"path": "{root}/absent.txt"}),
    Step("outside", "read_text_file", {"path": "/etc/passwd"}),
    Step("outside by dots", "read_text_file", {"path": "{root}/../../etc/passwd"}, "start"),
    Step("a directory", "list_directory", {"path": "{root}"}, "lines"),
    Step("a directory with sizes", "list_directory_with_sizes", {"path": "{root}/docs"}),
    Step("by size", "list_directory_with_sizes", {"path": "{root}/docs", "sortBy": "size"}),
    Step("a tree", "directory_tree", {"path": "{root}"}, "tree"),
    Step("a tree without", "directory_tree", {"path": "{root}/src", "excludePatterns": ["lib"]}, "tree"),
    Step("a tree without a kind", "directory_tree", {"path": "{root}/src", "excludePatterns": ["**/*.json"]}, "tree"),
    Step("search at any depth", "search_files", {"path": "{root}", "pattern": "**/*.py"}, "lines"),
    Step("search here", "search_files", {"path": "{root}/src", "pattern": "*.py"}, "lines"),
    Step("search with braces", "search_files", {"path": "{root}", "pattern": "**/*.{py,json}"}, "lines"),
    Step("search of folders", "search_files", {"path": "{root}", "pattern": "**/lib"}, "lines"),
    Step("search of the hidden", "search_files", {"path": "{root}", "pattern": "**/kept.txt"}, "lines"),
    Step(
        "search without",
        "search_files",
        {"path": "{root}", "pattern": "**/*.py", "excludePatterns": ["src/lib"]},
        "lines",
    ),
    Step("search in vain", "search_files", {"path": "{root}", "pattern": "**/*.rs"}),
    Step("create", "write_file", {"path": "{root}/docs/new.txt", "content": "one\ntwo\n"}),
    Step("overwrite what is known", "write_file", {"path": "{root}/docs/new.txt", "content": "one\n2\n"}),
    Step("as written", "read_text_file", {"path": "{root}/docs/new.txt"}),
    Step(
        "edit, dry",
        "edit_file",
        {
            "path": "{root}/src/app.py",
            "edits": [{"oldText": "    return 0", "newText": "    return 2"}],
            "dryRun": True,
        },
        "its diff has three lines around a change, not four",
    ),
    Step(
        "edit",
        "edit_file",
        {
            "path": "{root}/src/app.py",
            "edits": [
                {"oldText": "print('hello')", "newText": "print('good day')"},
                {"oldText": "    return 1", "newText": "    return 3"},
            ],
        },
    ),
    Step("as edited", "read_text_file", {"path": "{root}/src/app.py"}),
    Step(
        "edit in vain",
        "edit_file",
        {"path": "{root}/src/app.py", "edits": [{"oldText": "nowhere", "newText": "x"}]},
        "start",
    ),
    Step("make directories", "create_directory", {"path": "{root}/a/b/c"}),
    Step("make them again", "create_directory", {"path": "{root}/a/b/c"}),
    Step("move", "move_file", {"source": "{root}/docs/new.txt", "destination": "{root}/a/moved.txt"}),
    Step("as moved", "read_text_file", {"path": "{root}/a/moved.txt"}),
    Step("info", "get_file_info", {"path": "{root}/README.md"}, "no times of creation and access"),
    Step("info of nothing", "get_file_info", {"path": "{root}/absent.txt"}, "start"),
)

STEPS = {"filesystem": FILESYSTEM}
