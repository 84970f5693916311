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
    Step("head and tail of 0", "read_text_file", {"path": "{root}/docs/ten.txt", "head": 0, "tail": 0}),
    Step("a directory as a file", "read_text_file", {"path": "{root}/docs"}),
    Step("a directory as an image", "read_media_file", {"path": "{root}/docs"}),
    Step("no image", "read_media_file", {"path": "{root}/absent.png"}),
    Step("no files", "read_multiple_files", {"paths": []}, "other words"),
    Step("a number as a path", "read_text_file", {"path": 42}, "other words"),
    Step("no such tool", "no_such_tool", {}, "other words"),
    Step(
        "several files",
        "read_multiple_files",
        {"paths": ["{root}/README.md", "{root}/absent.txt", "{root}/docs/no_end.txt", "/etc/passwd", "{root}/docs"]},
    ),
    Step("absent", "read_text_file", {"path": "{root}/absent.txt"}),
    Step("outside", "read_text_file", {"path": "/etc/passwd"}),
    Step("outside by dots", "read_text_file", {"path": "{root}/../../etc/passwd"}, "start"),
    Step("a directory", "list_directory", {"path": "{root}"}, "lines"),
    Step("a directory with sizes", "list_directory_with_sizes", {"path": "{root}/docs"}),
    Step("by size", "list_directory_with_sizes", {"path": "{root}/docs", "sortBy": "size"}),
    Step("a file as a directory", "list_directory", {"path": "{root}/README.md"}),
    Step("a tree of a file", "directory_tree", {"path": "{root}/README.md"}),
    Step("a tree outside", "directory_tree", {"path": "/"}),
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
    Step("search by case", "search_files", {"path": "{root}", "pattern": "readme*"}, "lines"),
    Step("search by letters", "search_files", {"path": "{root}", "pattern": "**/[a-d]*.p?"}, "lines"),
    Step("search of all", "search_files", {"path": "{root}/src", "pattern": "**"}, "lines"),
    Step(
        "search without folders",
        "search_files",
        {"path": "{root}", "pattern": "**/*.py", "excludePatterns": ["**/lib"]},
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
        "begins",
    ),
    Step(
        "edit with dollars and ticks",
        "edit_file",
        {"path": "{root}/docs/no_end.txt", "edits": [{"oldText": "first", "newText": "'$&$1$$' ````"}]},
    ),
    Step(
        "edit of Windows lines",
        "edit_file",
        {
            "path": "{root}/windows.txt",
            "edits": [{"oldText": "a\r\n", "newText": "c\r\n"}, {"oldText": "b\n", "newText": "d\ne\n"}],
        },
    ),
    Step("edit of nothing", "edit_file", {"path": "{root}/absent.txt", "edits": [{"oldText": "a", "newText": "b"}]}),
    Step("edit of a directory", "edit_file", {"path": "{root}/docs", "edits": [{"oldText": "a", "newText": "b"}]}),
    Step("a new file by a relative path", "write_file", {"path": "relative.txt", "content": "x"}),
    Step("move onto another", "move_file", {"source": "{root}/relative.txt", "destination": "{root}/README.md"}),
    Step("move outside", "move_file", {"source": "{root}/relative.txt", "destination": "/outside/a.txt"}),
    Step("move of nothing", "move_file", {"source": "{root}/absent.txt", "destination": "{root}/b"}, "start"),
    Step("a directory where a file is", "create_directory", {"path": "{root}/README.md"}),
    Step("make directories", "create_directory", {"path": "{root}/a/b/c"}),
    Step("make them again", "create_directory", {"path": "{root}/a/b/c"}),
    Step("sizes of none", "list_directory_with_sizes", {"path": "{root}/a/b/c"}),
    Step("move", "move_file", {"source": "{root}/docs/new.txt", "destination": "{root}/a/moved.txt"}),
    Step("as moved", "read_text_file", {"path": "{root}/a/moved.txt"}),
    Step("info", "get_file_info", {"path": "{root}/README.md"}, "no times of creation and access"),
    Step("info of nothing", "get_file_info", {"path": "{root}/absent.txt"}, "start"),
)


def _of_app(**more: object) -> dict[str, object]:
    return {"absolute_file_path": "{root}/src/app.py", **more}


HELLO = [{"search": "    print('hello')", "replace": "    print('good day')"}]
BATCH = [{"search": "return 0", "replace": "return 2"}, {"search": "return 1", "replace": "return 3"}]

EDITED = "json success changes_applied changes_failed results index line_number match_type similarity"
"""Without the preview, in which the original has an empty line below each line."""

LARGEFILE = (
    Step(
        "overview",
        "get_overview",
        _of_app(),
        "json line_count file_size long_lines outline type line_number end_line line_count",
    ),
    Step("overview of words", "get_overview", {"absolute_file_path": "{root}/docs/ten.txt"}, "json"),
    Step("exact", "search_content", _of_app(pattern="return", fuzzy=False), "json results line_number match"),
    Step(
        "with a typo",
        "search_content",
        _of_app(pattern="    print('helo')"),
        "json results line_number match match_type",
    ),
    Step(
        "an expression",
        "search_content",
        _of_app(pattern=r"return \d", fuzzy=False, regex=True),
        "json results line_number match match_type",
    ),
    Step("count", "search_content", _of_app(pattern="RETURN", fuzzy=False, count_only=True), "json"),
    Step(
        "count with limits",
        "search_content",
        _of_app(pattern="return", fuzzy=False, count_only=True, max_results=5, context_lines=1),
        "json",
    ),
    Step("in vain", "search_content", _of_app(pattern="zzzzz", fuzzy=False), "json"),
    Step("without", "search_content", _of_app(pattern="return", fuzzy=False, invert=True), "json results line_number"),
    Step("lines", "read_content", _of_app(offset=2, limit=3), "json"),
    Step("from the end of it", "read_content", _of_app(offset=8, limit=30), "json"),
    Step(
        "head", "read_content", {"absolute_file_path": "{root}/docs/ten.txt", "mode": "head", "limit": 2}, "total known"
    ),
    Step("tail", "read_content", {"absolute_file_path": "{root}/docs/ten.txt", "mode": "tail", "limit": 2}, "json"),
    Step("at a match", "read_content", _of_app(pattern="def other", limit=4), "json"),
    Step("a whole function", "read_content", _of_app(offset=5, mode="semantic"), "without the lines between functions"),
    Step("around a line", "read_enclosing", _of_app(line=5), "the symbol without the word function"),
    Step(
        "around nothing",
        "read_enclosing",
        {"absolute_file_path": "{root}/docs/ten.txt", "line": 5, "context_lines": 4},
        "json",
    ),
    Step(
        "around a constant",
        "read_enclosing",
        {"absolute_file_path": "{root}/src/lib/deep.py", "line": 2, "context_lines": 2},
        "json",
    ),
    Step("a change without its new text", "edit_content", _of_app(changes=[{"search": "x"}]), "other words"),
    Step("preview", "edit_content", _of_app(changes=HELLO), EDITED),
    Step(
        "preview in vain", "edit_content", _of_app(changes=[{"search": "qqqqqqqqqq", "replace": "x"}]), "json success"
    ),
    Step("edit", "edit_content", _of_app(changes=HELLO, preview=False), EDITED),
    Step("batch", "edit_content", _of_app(changes=BATCH, preview=False, fuzzy=False), "json success changes_applied"),
    Step("as edited", "read_content", _of_app(), "json"),
    Step("a list", "list_directory", {"absolute_dir_path": "{root}"}, "json"),
    Step("a deep list", "list_directory", {"absolute_dir_path": "{root}", "max_depth": 3}, "json"),
    Step(
        "a cut list",
        "list_directory",
        {"absolute_dir_path": "{root}", "max_entries": 2},
        "json total_files total_dirs truncated",
    ),
    Step(
        "in files",
        "search_directory",
        {"absolute_dir_path": "{root}", "pattern": "line 1", "include_pattern": "*.txt"},
        "json total_matches files_with_matches truncated",
    ),
    Step("absent", "read_content", {"absolute_file_path": "{root}/absent.txt"}, "the same kind of error"),
)

STEPS = {"filesystem": FILESYSTEM, "largefile": LARGEFILE}
