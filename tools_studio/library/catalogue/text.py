"""Texts: measuring, comparing, searching, rewriting."""

from typing import Any

from tools_studio.library.catalogue.shipped import pure

_SHARED: dict[str, Any] = {"group": "text", "category": "Text"}

TEXT = (
    pure(
        "text_statistics",
        "Text statistics",
        "Make text statistics (text: {args.text})",
        {"text": "The quick brown fox jumps over the lazy dog. It was not amused."},
        tags=("words", "count"),
        **_SHARED,
    ),
    pure(
        "compare_texts",
        "Compare texts",
        "Compare two texts (old: {args.old}, new: {args.new})",
        {"old": "milk\nbread\neggs", "new": "milk\neggs\ntea"},
        tags=("diff",),
        **_SHARED,
    ),
    pure(
        "extract_matches",
        "Extract matches",
        "Extract matches (kind: {args.kind}, text: {args.text})",
        {"text": "Write to ann@example.com or ben@example.org.", "kind": "email"},
        tags=("regex", "search"),
        **_SHARED,
    ),
    pure(
        "replace_text",
        "Replace text",
        "Replace in a text (search: {args.search}, replacement: {args.replacement}, text: {args.text})",
        {"text": "The cat sat on the cat.", "search": "cat", "replacement": "dog"},
        tags=("regex",),
        **_SHARED,
    ),
    pure(
        "change_case",
        "Change case",
        "Change the case (case: {args.case}, text: {args.text})",
        {"text": "Crème brûlée for two", "case": "slug"},
        tags=("slug", "names"),
        **_SHARED,
    ),
    pure(
        "wrap_text",
        "Wrap text",
        "Wrap a text (width: {args.width}, text: {args.text})",
        {"text": "A long line that does not fit into a narrow column of a letter.", "width": 24},
        tags=("layout",),
        **_SHARED,
    ),
    pure(
        "sort_lines",
        "Sort lines",
        "Sort the lines (text: {args.text})",
        {"text": "file10\nfile2\nfile2", "remove_duplicates": True},
        tags=("lists", "duplicates"),
        **_SHARED,
    ),
    pure(
        "fill_template",
        "Fill template",
        "Fill a template (template: {args.template}, values: {args.values})",
        {"template": "Dear {{name}}, your order {{order}} is on its way.", "values": {"name": "Ann", "order": "4711"}},
        tags=("letters",),
        **_SHARED,
    ),
)
