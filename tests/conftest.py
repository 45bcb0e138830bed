from __future__ import annotations

import os
import signal
from pathlib import Path

# before SciPy is imported: scikit-learn's estimator checks then include those for array libraries
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# a shell that runs tests in the background has Ctrl-C ignored, which runs and commands respect
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from extras import reason_to_skip

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

settings.register_profile(
    "symnmf", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("symnmf")

#: Seconds after which what waits for another thread or process gives up: far beyond what any takes.
MINUTES = 300.0


def data_folder() -> Path | None:
    """Where the real data sets are, if they are."""
    named = os.environ.get("SYMNMF_DATA")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(named) if named else beside
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def real_data() -> Path:
    folder = data_folder()
    if folder is None:
        pytest.skip("the real data sets are absent: set SYMNMF_DATA to their folder")
    return folder


def synthetic_problem(n, r, noise=0.0, seed=0):
    """The paper's X = |G||G|^T + noise |N| with N symmetric."""
    rng = np.random.default_rng(seed)
    factor = np.abs(rng.standard_normal((n, r)))
    upper = np.triu(np.abs(rng.standard_normal((n, n))))
    return factor @ factor.T + noise * (upper + np.triu(upper, 1).T)


def long_count(variable: str, default: int) -> int:
    """How often a long test tries something; the environment may ask for more or less."""
    return int(os.environ.get(variable, default))


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"no browser: {CHROMIUM} is absent")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser):
    """Open a page and note everything it asks for and complains of."""
    contexts = []

    def visit(path, scheme="light", width=1280):
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.requests, page.complaints = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("dialog", lambda dialog: page.complaints.append("dialog") or dialog.dismiss())
        page.goto(path.as_uri())
        return page

    yield visit
    for context in contexts:
        context.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip a test that needs an extra which is not installed; see ``extras.py``."""
    try:
        return (yield)
    except Exception as error:
        reason = reason_to_skip(error)
        if reason is None:
            raise
        pytest.skip(reason)


def pytest_terminal_summary(terminalreporter):
    """Say in one line which tests were left out for want of data, and how to get them."""
    words = ("SYMNMF_DATA", "data set", "datasets fetch", "data are absent", "npz is absent")
    missing = [
        report
        for report in terminalreporter.stats.get("skipped", ())
        if any(word in str(report.longrepr) for word in words)
    ]
    if missing:
        terminalreporter.write_line(
            f"{len(missing)} tests were skipped because data sets are absent: symnmf datasets "
            f"fetch all downloads those that may be, symnmf datasets list shows the others."
        )
