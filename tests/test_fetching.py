"""Downloads of data sets, from a server on this machine that is laid out as the sources are."""

import functools
import hashlib
import http.server
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest
import scipy.io

from shell import command
from symnmf import datasets
from symnmf.archives import digest
from symnmf.datasets import fetching, loading, recipes
from symnmf.errors import InputError


@pytest.fixture
def server(tmp_path):
    """A folder, and the address under which its files are served."""
    root = tmp_path / "served"
    root.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    running = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(root))
    )
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield root, f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SYMNMF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SYMNMF_DATA", str(tmp_path / "nothing"))
    return tmp_path / "cache"


def put(root, url, content):
    parts = urlsplit(url)
    path = root / parts.netloc / parts.path.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def stored(real_data, name):
    with np.load(real_data / loading.STORED[name].filename) as file:
        return {key: file[key] for key in file.files}


def as_gml(arrays):
    nodes = "".join(
        f'node [ id {i} label "{name}" gt "{arrays["label_names"][k]}" ]\n'
        for i, name, k in zip(arrays["orig_id"], arrays["node_names"], arrays["y"], strict=True)
    )
    ids = arrays["orig_id"]
    edges = "".join(f"edge [ source {ids[u]} target {ids[v]} ]\n" for u, v in arrays["edges"])
    return f"graph [\n{nodes}{edges}]\n".encode()


def as_text(rows):
    return "".join(f"{u} {v}\n" for u, v in rows).encode()


def as_mat(tmp_path, **arrays):
    scipy.io.savemat(tmp_path / "x.mat", arrays)
    return (tmp_path / "x.mat").read_bytes()


@pytest.mark.parametrize("name", ["football", "polbooks", "dolphins", "email_eu_core", "coil20"])
def test_what_is_made_of_sources_is_what_was_used(name, real_data, tmp_path):
    arrays = stored(real_data, name)
    if name == "email_eu_core":
        parts = [as_text(arrays["directed_edges"]), as_text(enumerate(arrays["y"]))]
    elif name == "coil20":
        parts = [as_mat(tmp_path, fea=arrays["X"] / 4080.0, gnd=arrays["y"][:, None])]
    else:
        parts = [as_gml(arrays)]
    made = recipes.RECIPES[name](*parts)
    assert digest(made) == loading.STORED[name].content


#: A small graph that needs no real data.
GML = b"""graph [
node [ id 0 label "a" gt 1 ]
node [ id 1 label "b" gt 2 ]
edge [ source 0 target 1 ]
]"""


@pytest.fixture
def small(monkeypatch):
    content = digest(recipes.from_gml(GML))
    monkeypatch.setitem(
        loading.STORED, "football", loading.STORED["football"]._replace(content=content)
    )
    (url,) = (url for name, url, _ in fetching.SOURCES if name == "football")
    expected = hashlib.sha256(GML).hexdigest()
    monkeypatch.setattr(fetching, "SOURCES", [["football", url, expected]])
    return url


def test_a_download_is_kept_and_found(server, cache, small):
    root, address = server
    put(root, small, GML)
    assert not {entry.name: entry.present for entry in datasets.available()}["football"]
    datasets.fetch("football", mirror=address)
    assert {entry.name: entry.present for entry in datasets.available()}["football"]
    assert datasets.load("football").node_names == ("a", "b")


def test_other_content_is_not_kept(server, cache, small):
    root, address = server
    for other in (GML.replace(b"gt 2", b"gt 3"), b"<html>moved</html>"):
        put(root, small, other)
        with pytest.raises(InputError, match="not today what our results were computed with"):
            datasets.fetch("football", mirror=address)
    assert not list(cache.iterdir())


def test_sources_that_do_not_answer(server, cache, monkeypatch):
    _, address = server
    with pytest.raises(InputError, match="404"):
        datasets.fetch("football", mirror=address)
    with pytest.raises(InputError, match="cannot be read"):
        datasets.fetch("football", mirror="http://127.0.0.1:9")
    with pytest.raises(InputError, match="not an http or https address"):
        datasets.fetch("football", mirror="file:///etc")
    with pytest.raises(InputError, match="did you mean"):
        datasets.fetch("footbal")


def test_the_command(server, cache, small):
    root, address = server
    put(root, small, GML)
    done = command("datasets", "fetch", "football", "--mirror", address)
    assert done.exit_code == 0, done.stderr
    assert "football.npz" in done.stdout
    shown = command("datasets list").stdout
    assert "symnmf datasets fetch polbooks" in shown


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": 5}, "name must be text"),
        ({"mirror": 5}, "mirror must be text or None"),
        ({"folder": 5}, "folder must be the path of a file or None"),
        ({"mirror": "ftp://127.0.0.1"}, "not an http or https address"),
        ({"mirror": "http://[::1"}, "cannot be read"),
        ({"mirror": "http://127.0.0.1 :1"}, "cannot be read"),
    ],
)
def test_what_cannot_be_fetched_is_said_in_one_sentence(given, said, cache):
    with pytest.raises(InputError, match=said):
        datasets.fetch(**{"name": "football", **given})
