import datetime

def abbreviation(moment: datetime.datetime, zone: str) -> str:
    """What people in `zone` call their time at that moment, such as CEST."""
def attach(moment: datetime.datetime, zone: str, fold: int = 0) -> datetime.datetime:
    """The moment when the clocks of `zone` show `moment`, which has no zone of its own."""
def convert(moment: datetime.datetime, zone: str) -> datetime.datetime:
    """The same moment on the clocks of `zone`."""
def names(prefix: str = "") -> list[str]:
    """The names of all zones that begin with `prefix`, such as Europe/."""
def offset(moment: datetime.datetime, zone: str) -> datetime.timedelta:
    """How far the clocks of `zone` are ahead of UTC at that moment."""
