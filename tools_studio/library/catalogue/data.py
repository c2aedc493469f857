"""Tables and JSON."""

from typing import Any

from tools_studio.library.catalogue.shipped import pure

_SHARED: dict[str, Any] = {"group": "data", "category": "Data"}
_ROWS = [{"city": "Lyon", "sold": 12}, {"city": "Cork", "sold": 7}, {"city": "Lyon", "sold": 3}]

DATA = (
    pure(
        "read_csv",
        "Read CSV",
        "Read CSV (text: {args.text})",
        {"text": "city;sold\nLyon;12\nCork;7"},
        tags=("csv", "json"),
        **_SHARED,
    ),
    pure(
        "write_csv",
        "Write CSV",
        "Write CSV (rows: {args.rows})",
        {"rows": _ROWS, "columns": ["city", "sold"]},
        tags=("csv", "json"),
        **_SHARED,
    ),
    pure(
        "write_table",
        "Write table",
        "Write a table (rows: {args.rows})",
        {"rows": _ROWS},
        tags=("markdown", "json"),
        **_SHARED,
    ),
    pure(
        "query_json",
        "Query JSON",
        "Query JSON (path: {args.path}, data: {args.data})",
        {"data": {"orders": [{"customer": "Ann", "total": 143}, {"customer": "Ben", "total": 259.9}]},
         "path": "orders[*].total"},
        tags=("json", "search"),
        **_SHARED,
    ),
    pure(
        "summarize_rows",
        "Summarize rows",
        "Summarize rows (group_by: {args.group_by}, measure: {args.measure}, column: {args.column}, rows: {args.rows})",
        {"rows": _ROWS, "group_by": ["city"], "measure": "sum", "column": "sold"},
        tags=("group", "totals"),
        **_SHARED,
    ),
    pure(
        "check_json",
        "Check JSON",
        "Check JSON (data: {args.data}, schema: {args.schema})",
        {"data": {"name": "Ann", "age": -1}, "schema": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}}}},
        tags=("json", "schema"),
        **_SHARED,
    ),
)  # fmt: skip
