from tests.processes import installation, migrated, servers

__all__ = ["installation", "migrated", "servers"]
