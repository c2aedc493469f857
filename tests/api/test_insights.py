"""The oversight report over REST: the same as the page's, and for administrators alone."""

from django.contrib.auth.models import User

from tests.api.conftest import Program, problem
from tests.api.described import described
from tests.insights.rows import answered, ran


def test_administrators_read_the_report_of_a_period(bob: User, machine: Program, bobs: Program) -> None:
    answered(bob, "refund", took=12)
    ran(bob, "look", reason="A rule allows it.")
    found = described(machine.get("/insights/report", period="7d"))
    assert (found["questions"]["asked"], found["answers"]["medianSeconds"]) == (1, 12)
    assert found["unasked"]["latestReasons"][0]["reason"] == "A rule allows it."
    assert described(machine.get("/insights/report"))["since"] < found["since"]
    problem(machine.get("/insights/report", period="9d"), 422)
    problem(bobs.get("/insights/report"), 403)
