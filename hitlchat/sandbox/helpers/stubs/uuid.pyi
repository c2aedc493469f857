def UUID(hex: str) -> str:
    """The identifier in its usual form. Identifiers are texts here."""
def uuid3(namespace: str, name: str) -> str: ...
def uuid5(namespace: str, name: str) -> str: ...
NAMESPACE_DNS: str
NAMESPACE_OID: str
NAMESPACE_URL: str
NAMESPACE_X500: str
