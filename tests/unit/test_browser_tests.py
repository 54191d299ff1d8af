"""The browser tests avoid calls that fail only on a busy machine."""

from django.conf import settings


def test_no_browser_test_waits_for_a_function():
    """Playwright evaluates its text again at each try, which the pages' content security policy forbids."""
    tests = list((settings.BASE_DIR / "tests/browser").glob("*.py"))
    assert tests
    assert [test.name for test in tests if ".wait_for_function(" in test.read_text()] == []
