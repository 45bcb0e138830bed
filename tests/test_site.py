"""The built site as a reader sees it: links lead somewhere, and pages can be read on any screen."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
SCREENS = [(390, "light"), (390, "dark"), (1400, "light"), (1400, "dark")]
#: Contrast of the text against what is behind it, the size of the letters, and what sticks out.
LOOK = """() => {
  const light = c => {
    const [r, g, b] = c.match(/[\\d.]+/g).map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const text = (document.querySelector("article p") || document.body);
  const clear = e => /rgba\\(.*, 0\\)|transparent/.test(getComputedStyle(e).backgroundColor);
  let behind = text;
  while (clear(behind) && behind.parentElement) behind = behind.parentElement;
  const ground = clear(behind) ? "rgb(255, 255, 255)" : getComputedStyle(behind).backgroundColor;
  const [a, b] = [getComputedStyle(text).color, ground].map(light);
  return {
    contrast: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05),
    size: parseFloat(getComputedStyle(text).fontSize),
    title: (document.querySelector("h1") || document.body).getBoundingClientRect().width,
    beyond: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  };
}"""


class Page(HTMLParser):
    """What a page links to, and the anchors it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.links.append(value)
            elif name == "id":
                self.anchors.add(value)


@pytest.fixture(scope="module")
def site():
    if not (SITE / "index.html").is_file():
        pytest.skip("the site is not built: run make docs")
    return {
        path: Page(path) for path in sorted(SITE.rglob("*.html")) if "_static" not in path.parts
    }


def test_every_link_and_anchor_leads_somewhere(site):
    broken = []
    for path, page in site.items():
        for link in page.links:
            where = urlsplit(link)
            if where.scheme or where.netloc:
                continue
            target = (path.parent / unquote(where.path)).resolve() if where.path else path
            if not target.exists():
                broken.append(f"{path.relative_to(SITE)}: {link}")
            elif target in site and unquote(where.fragment) not in site[target].anchors:
                broken.append(f"{path.relative_to(SITE)}: no anchor {link}")
    assert not broken, "\n".join(broken)


def test_the_gallery_has_a_picture_for_each_example(site):
    examples = list((SITE.parents[2] / "examples" / "gallery").glob("plot_*.py"))
    assert len(examples) >= 12
    for example in examples:
        pictures = [
            link
            for link in site[SITE / "gallery" / f"{example.stem}.html"].links
            if f"{example.stem}_001" in link
        ]
        assert pictures, example.name


def _note_error(message, complaints):
    if message.type in ("error", "warning"):  # the theme also tells which colours it took
        complaints.append(message.text)


def test_pages_can_be_read_on_every_screen(site, browser):
    """Every page that a person wrote, on one of four screens in turn; the start page on all."""
    written = [path for path in site if not {"generated", "_downloads"} & {*path.parts}]
    visits = [(SITE / "index.html", screen) for screen in SCREENS]
    visits += [(path, SCREENS[place % len(SCREENS)]) for place, path in enumerate(written)]
    faults = []
    for screen in SCREENS:
        width, scheme = screen
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
        page = context.new_page()
        complaints, requests = [], []
        page.on("console", lambda message, to=complaints: _note_error(message, to))
        page.on("pageerror", lambda error, to=complaints: to.append(str(error)))
        page.on("request", lambda request, to=requests: to.append(request.url))
        for path in [path for path, where in visits if where == screen]:
            page.goto(path.as_uri())
            look = page.evaluate(LOOK)
            outside = [url for url in requests if not url.startswith(("file:", "data:"))]
            if (
                complaints
                or outside
                or look["contrast"] < 4.5
                or look["size"] < 14
                or look["title"] > width
                or look["beyond"] > 0
            ):
                found = (path.relative_to(SITE), width, scheme, look, complaints[:1], outside[:1])
                faults.append(" ".join(map(str, found)))
            complaints.clear()
            requests.clear()
        context.close()
    assert not faults, "\n".join(faults)
