"""Tools that only work something out: texts, encodings, numbers, dates, tables and what should not be in a text."""

from typing import Any

from tools_studio.library.catalogue.shipped import ShippedTool, pure

_TEXT: dict[str, Any] = {"group": "text", "category": "Text"}

TEXT = (
    pure(
        "text_statistics",
        "Text statistics",
        "Make text statistics (text: {args.text})",
        {"text": "The quick brown fox jumps over the lazy dog. It was not amused."},
        tags=("words", "count"),
        **_TEXT,
    ),
    pure(
        "compare_texts",
        "Compare texts",
        "Compare two texts (old: {args.old}, new: {args.new})",
        {"old": "milk\nbread\neggs", "new": "milk\neggs\ntea"},
        tags=("diff",),
        **_TEXT,
    ),
    pure(
        "extract_matches",
        "Extract matches",
        "Extract matches (kind: {args.kind}, text: {args.text})",
        {"text": "Write to ann@example.com or ben@example.org.", "kind": "email"},
        tags=("regex", "search"),
        **_TEXT,
    ),
    pure(
        "replace_text",
        "Replace text",
        "Replace in a text (search: {args.search}, replacement: {args.replacement}, text: {args.text})",
        {"text": "The cat sat on the cat.", "search": "cat", "replacement": "dog"},
        tags=("regex",),
        **_TEXT,
    ),
    pure(
        "change_case",
        "Change case",
        "Change the case (case: {args.case}, text: {args.text})",
        {"text": "Crème brûlée for two", "case": "slug"},
        tags=("slug", "names"),
        **_TEXT,
    ),
    pure(
        "wrap_text",
        "Wrap text",
        "Wrap a text (width: {args.width}, text: {args.text})",
        {"text": "A long line that does not fit into a narrow column of a letter.", "width": 24},
        tags=("layout",),
        **_TEXT,
    ),
    pure(
        "sort_lines",
        "Sort lines",
        "Sort the lines (text: {args.text})",
        {"text": "file10\nfile2\nfile2", "remove_duplicates": True},
        tags=("lists", "duplicates"),
        **_TEXT,
    ),
    pure(
        "fill_template",
        "Fill template",
        "Fill a template (template: {args.template}, values: {args.values})",
        {"template": "Dear {{name}}, your order {{order}} is on its way.", "values": {"name": "Ann", "order": "4711"}},
        tags=("letters",),
        **_TEXT,
    ),
)


_ENCODING: dict[str, Any] = {"group": "encoding", "category": "Encoding"}

ENCODING = (
    pure(
        "base64_text",
        "Base64 text",
        "Base64 text (direction: {args.direction}, text: {args.text})",
        {"text": "Grüße aus Köln", "direction": "encode"},
        tags=("base64",),
        **_ENCODING,
    ),
    pure(
        "hex_text",
        "Hex text",
        "Hex text (direction: {args.direction}, text: {args.text})",
        {"text": "48 65 6c 6c 6f", "direction": "decode"},
        tags=("hexadecimal",),
        **_ENCODING,
    ),
    pure(
        "url_text",
        "URL text",
        "URL text (action: {args.action}, text: {args.text})",
        {"text": "https://example.com/a%20b?q=tea+cup", "action": "take apart"},
        tags=("url", "percent"),
        **_ENCODING,
    ),
    pure(
        "html_text",
        "HTML text",
        "HTML text (action: {args.action}, text: {args.text})",
        {"text": "<p>Fish &amp; chips</p>", "action": "remove tags"},
        tags=("html", "entities"),
        **_ENCODING,
    ),
)


_MATHS: dict[str, Any] = {"group": "maths", "category": "Math"}

MATHS = (
    pure(
        "convert_units",
        "Convert units",
        "Convert {args.value} {args.from_unit} to {args.to_unit}",
        {"value": 10, "from_unit": "km", "to_unit": "miles"},
        tags=("units",),
        **_MATHS,
    ),
    pure(
        "calculate",
        "Calculate",
        "Calculate {args.expression}",
        {"expression": "(3 + 4) * 2^10 / sqrt(4)"},
        tags=("arithmetic",),
        **_MATHS,
    ),
    pure(
        "number_statistics",
        "Number statistics",
        "Make number statistics (numbers: {args.numbers})",
        {"numbers": [12, 7, 3, 22.5, 7]},
        tags=("mean", "median"),
        **_MATHS,
    ),
    pure(
        "percentage",
        "Percentage",
        "Work out a percentage (question: {args.question}, first: {args.first}, second: {args.second})",
        {"question": "add percent", "first": "119.00", "second": "19"},
        tags=("percent", "prices"),
        **_MATHS,
    ),
    pure(
        "loan_payment",
        "Loan payment",
        "Work out a loan payment (amount: {args.amount}, yearly_rate: {args.yearly_rate}, months: {args.months})",
        {"amount": "10000.00", "yearly_rate": "4.5", "months": 36},
        tags=("money", "interest"),
        **_MATHS,
    ),
    pure(
        "savings_growth",
        "Savings growth",
        "Work out savings growth (start: {args.start}, yearly_rate: {args.yearly_rate}, years: {args.years})",
        {"start": "1000.00", "yearly_rate": "3", "years": 5, "monthly_deposit": "50.00"},
        tags=("money", "interest"),
        **_MATHS,
    ),
    pure(
        "split_amount",
        "Split amount",
        "Split an amount (amount: {args.amount}, shares: {args.shares})",
        {"amount": "100.00", "shares": [1, 1, 1], "names": ["Ann", "Ben", "Chloe"]},
        tags=("money",),
        **_MATHS,
    ),
)


_DATES: dict[str, Any] = {"group": "dates", "category": "Date/Time"}

DATES = (
    pure(
        "get_current_time",
        "Get current time",
        "Read the clock in {args.timezone}",
        {"timezone": "Europe/Berlin"},
        capabilities={"now": True},
        tags=("clock", "time zones"),
        **_DATES,
    ),
    pure(
        "change_zone",
        "Change time zone",
        "Change the time zone (moment: {args.moment}, from_zone: {args.from_zone}, to_zone: {args.to_zone})",
        {"moment": "2026-03-29T09:30:00", "from_zone": "Europe/Berlin", "to_zone": "Asia/Tokyo"},
        tags=("time zones",),
        **_DATES,
    ),
    pure("read_date", "Read date", "Read the date {args.text}", {"text": "31 January 2026"}, tags=("parse",), **_DATES),
    pure(
        "date_difference",
        "Date difference",
        "Tell the difference of the dates (start: {args.start}, end: {args.end})",
        {"start": "2026-01-31", "end": "2026-12-24"},
        tags=("calendar",),
        **_DATES,
    ),
    pure(
        "add_to_date",
        "Add to date",
        "Add to the date (start: {args.start}, months: {args.months}, days: {args.days})",
        {"start": "2026-01-31", "months": 1, "days": 10},
        tags=("calendar",),
        **_DATES,
    ),
    pure(
        "count_working_days",
        "Count working days",
        "Count the working days from {args.start} to {args.end}",
        {"start": "2026-12-01", "end": "2026-12-31", "holidays": ["2026-12-25"]},
        tags=("calendar", "office"),
        **_DATES,
    ),
    pure(
        "show_month",
        "Show month",
        "Show month {args.month} of the year {args.year}",
        {"year": 2026, "month": 12},
        tags=("calendar",),
        **_DATES,
    ),
    pure(
        "next_weekday",
        "Next weekday",
        "Tell the next weekday (weekday: {args.weekday}, after: {args.after}, count: {args.count})",
        {"weekday": "Monday", "after": "2026-01-31", "count": 4},
        tags=("calendar",),
        **_DATES,
    ),
)


_DATA: dict[str, Any] = {"group": "data", "category": "Data"}
_ROWS = [{"city": "Lyon", "sold": 12}, {"city": "Cork", "sold": 7}, {"city": "Lyon", "sold": 3}]

DATA = (
    pure(
        "read_csv",
        "Read CSV",
        "Read CSV (text: {args.text})",
        {"text": "city;sold\nLyon;12\nCork;7"},
        tags=("csv", "json"),
        **_DATA,
    ),
    pure(
        "write_csv",
        "Write CSV",
        "Write CSV (rows: {args.rows})",
        {"rows": _ROWS, "columns": ["city", "sold"]},
        tags=("csv", "json"),
        **_DATA,
    ),
    pure(
        "write_table",
        "Write table",
        "Write a table (rows: {args.rows})",
        {"rows": _ROWS},
        tags=("markdown", "json"),
        **_DATA,
    ),
    pure(
        "query_json",
        "Query JSON",
        "Query JSON (path: {args.path}, data: {args.data})",
        {"data": {"orders": [{"customer": "Ann", "total": 143}, {"customer": "Ben", "total": 259.9}]},
         "path": "orders[*].total"},
        tags=("json", "search"),
        **_DATA,
    ),
    pure(
        "summarize_rows",
        "Summarize rows",
        "Summarize rows (group_by: {args.group_by}, measure: {args.measure}, column: {args.column}, rows: {args.rows})",
        {"rows": _ROWS, "group_by": ["city"], "measure": "sum", "column": "sold"},
        tags=("group", "totals"),
        **_DATA,
    ),
    pure(
        "check_json",
        "Check JSON",
        "Check JSON (data: {args.data}, schema: {args.schema})",
        {"data": {"name": "Ann", "age": -1}, "schema": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}}}},
        tags=("json", "schema"),
        **_DATA,
    ),
)  # fmt: skip


_SECURITY: dict[str, Any] = {"group": "security", "category": "Security"}
_CRYPTO: dict[str, Any] = {"group": "security", "category": "Crypto"}
# The well-known sample from the specification's web site, which opens nothing.
_SAMPLE_TOKEN = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"  # noqa: S105
    ".eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ"
    ".SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
)

SECURITY = (
    pure(
        "hash_text",
        "Hash text",
        "Hash a text (algorithm: {args.algorithm}, text: {args.text})",
        {"text": "hello", "algorithm": "sha256"},
        tags=("hash", "checksum"),
        **_CRYPTO,
    ),
    ShippedTool(
        name="sign_text",
        title="Sign text",
        prompt_template="Sign a text (text: {args.text})",
        example={"text": "order 4711 is paid"},
        tags=("hmac", "signature"),
        capabilities={"secrets": True},
        variables=(("SIGNING_KEY", True, ""),),
        set_up="give the secret SIGNING_KEY a value",
        **_CRYPTO,
    ),
    pure("read_token", "Read token", "Read the token {args.token}", {"token": _SAMPLE_TOKEN}, tags=("jwt",), **_CRYPTO),
    pure(
        "check_password",
        "Check password",
        "Check a password (password: {args.password})",
        {"password": "Tr0ub4dor3"},
        tags=("passwords",),
        **_SECURITY,
    ),
    pure(
        "make_password",
        "Make password",
        "Make a password (length: {args.length})",
        {"length": 20},
        tags=("passwords", "chance"),
        capabilities={"random": True},
        **_SECURITY,
    ),
    pure(
        "make_uuid",
        "Make UUID",
        "Make a UUID (count: {args.count})",
        {"count": 3},
        tags=("identifiers", "chance"),
        capabilities={"random": True},
        **_SECURITY,
    ),
    pure(
        "find_secrets",
        "Find secrets",
        "Find secrets (text: {args.text})",
        {"text": "host: db.example.com\npassword: not-a-real-one"},
        tags=("leaks", "search"),
        **_SECURITY,
    ),
    pure(
        "mask_personal_data",
        "Mask personal data",
        "Mask personal data (text: {args.text})",
        {"text": "Ann (ann@example.com, +44 20 7946 0958) paid from DE89 3704 0044 0532 0130 00."},
        tags=("privacy", "gdpr"),
        **_SECURITY,
    ),
)
