"""Messages to people, and notes for later."""

from tools_studio.library.catalogue.shipped import ShippedTool

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
