"""`check --deploy` has nothing to say about an installation that is set up as SECURITY.md says."""

import pytest
from django.conf import settings
from django.core.checks import run_checks

from tests.processes import Installation, installation, migrated

__all__ = ["installation", "migrated"]


def test_without_https_it_speaks_of_https_alone() -> None:
    found = {str(each.id) for each in run_checks(include_deployment_checks=True) if not each.is_silenced()}
    # Seconds of HSTS, and the cookies of sessions and of CSRF tokens.
    assert (settings.HTTPS, found) == (False, {"security.W004", "security.W012", "security.W016"})


@pytest.mark.slow("starts a program")
def test_with_the_documented_variables_it_is_silent(installation: Installation) -> None:
    documented = {"HTTPS": "1", "ALLOWED_HOSTS": "hitl.example.com"}
    assert "no issues" in installation.manage("check", "--deploy", "--fail-level", "INFO", **documented)
