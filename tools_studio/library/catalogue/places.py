"""Tools that reach something: the order desk, files, messages, and public services that need no key."""

from typing import Any

from tools_studio.library.catalogue.shipped import ShippedTool

_ORDERS: dict[str, Any] = {"group": "order-desk", "category": "Productivity", "capabilities": {"store": True}}

ORDERS = (
    ShippedTool(
        name="list_orders",
        title="List orders",
        prompt_template="List the orders (status: {args.status})",
        example={"status": "paid"},
        tags=("orders", "example"),
        hitl_mode="DISABLED",  # it only reads
        **_ORDERS,
    ),
    ShippedTool(
        name="get_order",
        title="Get order",
        prompt_template="Show order {args.order_id}",
        example={"order_id": "4711"},
        tags=("orders", "example"),
        hitl_mode="DISABLED",
        **_ORDERS,
    ),
    ShippedTool(
        name="refund_order",
        title="Refund order",
        prompt_template="Refund {args.amount} EUR for order {args.order_id}",
        example={"order_id": "4711", "amount": "129.00", "reason": "lamp returned"},
        tags=("orders", "money", "example"),
        **_ORDERS,
    ),
    ShippedTool(
        name="cancel_order",
        title="Cancel order",
        prompt_template="Cancel order {args.order_id}",
        example={"order_id": "4712", "reason": "ordered twice"},
        tags=("orders", "example"),
        **_ORDERS,
    ),
    ShippedTool(
        name="change_address",
        title="Change address",
        prompt_template="Change the address of order {args.order_id} to {args.address}",
        example={"order_id": "4712", "address": "7 Station Road, Galway H91 E8PA"},
        tags=("orders", "example"),
        **_ORDERS,
    ),
    ShippedTool(
        name="order_history",
        title="Order history",
        prompt_template="Show the history of order {args.order_id}",
        example={"order_id": "4711"},
        tags=("orders", "example"),
        hitl_mode="DISABLED",
        **_ORDERS,
    ),
)


_FILES: dict[str, Any] = {"group": "files", "category": "Files"}
_READ = {"files": {"mode": "read", "folder": "workspace"}}
_WRITE = {"files": {"mode": "write", "folder": "workspace"}}

FILES = (
    ShippedTool(
        name="list_files",
        title="List files",
        prompt_template="List the files in the workspace",
        example={},
        capabilities=_READ,
        tags=("workspace",),
        **_FILES,
    ),
    ShippedTool(
        name="read_file",
        title="Read file",
        prompt_template="Read a file (path: {args.path})",
        example={"path": "notes/today.txt"},
        capabilities=_READ,
        tags=("workspace",),
        **_FILES,
    ),
    ShippedTool(
        name="search_files",
        title="Search files",
        prompt_template="Search files (words: {args.words})",
        example={"words": "tea"},
        capabilities=_READ,
        tags=("workspace", "search"),
        **_FILES,
    ),
    ShippedTool(
        name="write_file",
        title="Write file",
        prompt_template="Write a file (path: {args.path}, text: {args.text})",
        example={"path": "notes/today.txt", "text": "Buy tea."},
        capabilities=_WRITE,
        tags=("workspace",),
        **_FILES,
    ),
    ShippedTool(
        name="append_to_file",
        title="Append to file",
        prompt_template="Append to a file (path: {args.path}, text: {args.text})",
        example={"path": "notes/today.txt", "text": "Water the plants."},
        capabilities=_WRITE,
        tags=("workspace",),
        **_FILES,
    ),
    ShippedTool(
        name="delete_file",
        title="Delete file",
        prompt_template="Delete a file for good (path: {args.path})",
        example={"path": "notes/today.txt"},
        capabilities={**_WRITE, "destructive": True},
        tags=("workspace",),
        **_FILES,
    ),
)


MESSAGES = (
    ShippedTool(
        name="send_email",
        title="Send e-mail",
        group="messages",
        category="Messaging",
        prompt_template="Send an email (to: {args.to}, subject: {args.subject}, text: {args.text})",
        example={"to": ["ann@example.com"], "subject": "Your refund", "text": "129.00 EUR are on their way to you."},
        capabilities={"email": {"to": ["@example.com"]}},
        tags=("mail",),
        set_up="name your own recipients in its capabilities instead of @example.com",
    ),
    ShippedTool(
        name="post_to_webhook",
        title="Post to webhook",
        group="messages",
        category="Messaging",
        prompt_template="Post to the webhook (text: {args.text})",
        example={"text": "The nightly backup is done.", "urgency": "info"},
        capabilities={"webhook": {"targets": ["WEBHOOK_URL"]}},
        variables=(("WEBHOOK_URL", True, ""),),
        tags=("chat", "slack"),
        set_up="give the secret WEBHOOK_URL the address of your channel",
    ),
    ShippedTool(
        name="save_note",
        title="Save note",
        group="notes",
        category="Productivity",
        prompt_template="Save a note (title: {args.title}, text: {args.text})",
        example={"title": "Tea order", "text": "Ann takes Assam, Ben takes Earl Grey."},
        capabilities={"store": True},
        tags=("memory",),
    ),
    ShippedTool(
        name="find_notes",
        title="Find notes",
        group="notes",
        category="Productivity",
        prompt_template="Find notes (words: {args.words})",
        example={"words": "tea"},
        hitl_mode="DISABLED",  # it only reads
        capabilities={"store": True},
        tags=("memory", "search"),
    ),
)


def _reads(*hosts: str, **said: Any) -> ShippedTool:
    fetch = {"mode": "allowlist", "hosts": sorted(hosts), "methods": ["GET"]}
    return ShippedTool(group="web", category="Web", capabilities={"fetch": fetch}, **said)


WEB = (
    _reads(
        "api.open-meteo.com",
        "geocoding-api.open-meteo.com",
        name="weather_forecast",
        title="Weather forecast",
        prompt_template="Tell the weather forecast in {args.place} for {args.days} days",
        example={"place": "Lisbon", "days": 3},
        tags=("weather",),
    ),
    _reads(
        "geocoding-api.open-meteo.com",
        name="find_place",
        title="Find place",
        prompt_template="Find the place {args.name}",
        example={"name": "Cork"},
        tags=("maps",),
    ),
    _reads(
        "api.sunrise-sunset.org",
        name="sun_times",
        title="Sun times",
        prompt_template="Tell the sun times (latitude: {args.latitude}, longitude: {args.longitude}, day: {args.day})",
        example={"latitude": 38.72, "longitude": -9.14, "day": "2026-06-21", "timezone": "Europe/Lisbon"},
        tags=("astronomy",),
    ),
    _reads(
        *(f"{language}.wikipedia.org" for language in ("en", "de", "fr", "es")),
        name="wikipedia_summary",
        title="Wikipedia summary",
        prompt_template="Read the Wikipedia summary of {args.title}",
        example={"title": "Ada Lovelace"},
        tags=("encyclopedia",),
    ),
    _reads(
        "hn.algolia.com",
        name="hacker_news",
        title="Hacker News",
        prompt_template="List Hacker News (limit: {args.limit})",
        example={"limit": 10},
        tags=("news",),
    ),
    _reads(
        "api.github.com",
        name="github_repository",
        title="GitHub repository",
        prompt_template="Describe a GitHub repository (repository: {args.repository})",
        example={"repository": "django/django"},
        tags=("code",),
    ),
    _reads(
        "api.worldbank.org",
        name="country_facts",
        title="Country facts",
        prompt_template="Tell the facts of a country (country: {args.country})",
        example={"country": "IE"},
        tags=("countries",),
    ),
    _reads(
        "date.nager.at",
        name="public_holidays",
        title="Public holidays",
        prompt_template="List public holidays (country: {args.country}, year: {args.year})",
        example={"country": "IE", "year": 2026},
        tags=("calendar", "countries"),
    ),
    _reads(
        "api.frankfurter.dev",
        name="exchange_rate",
        title="Exchange rate",
        prompt_template="Tell what {args.amount} {args.from_currency} is in {args.to_currency} at the exchange rate",
        example={"amount": "100.00", "from_currency": "USD", "to_currency": "EUR"},
        tags=("money", "currencies"),
    ),
    _reads(
        "api.crossref.org",
        name="find_papers",
        title="Find papers",
        prompt_template="Find papers about {args.search}",
        example={"search": "human in the loop", "limit": 5},
        tags=("science", "search"),
    ),
    _reads(
        "openlibrary.org",
        name="find_books",
        title="Find books",
        prompt_template="Find books about {args.search}",
        example={"search": "sourdough bread", "limit": 5},
        tags=("library", "search"),
    ),
)
