"""Arguments, errors and exit statuses of the command."""

import gzip
import json

import pytest

import pyweb
from pyweb.cli.main import main

PAGE = "<html><head><title>Bread</title></head><body><h1>Bread</h1><p>{}</p></body></html>".format(
    "The baker rises at four and lights the oven. " * 5
)


@pytest.mark.parametrize(
    "arguments, error",
    [
        ([], "UsageError"),
        (["nothing"], "UsageError"),
        (["ask", "--page", "x.html"], "UsageError"),
        (["ask", "--page", "x.html", "--mode", "fast", "q"], "UsageError"),
        (["ask", "--page", "x.html", "--max-tokens", "0", "q"], "UsageError"),
        (["ask", "--page", "x.html", "--max-tokens", "many", "q"], "UsageError"),
        (["ask", "--page", "x.html", "  "], "UsageError"),
        (["ask", "--page", "no-such-page.html", "q"], "UsageError"),
        (["ask", "--page", "x.html", "--model", "nobody", "q"], "UnknownModelError"),
        (["ask", "--page", "x.html", "--model", "no/such.gguf", "q"], "UnknownModelError"),
        (["perplexity", "--text", "no-such.txt", "--tokens", "9"], "UsageError"),
        (["extract", "no-such-page.html"], "UsageError"),
        (["fetch", "nobody"], "UnknownModelError"),
        (["models", "--inspect", "no-such.gguf"], "UnknownModelError"),
    ],
)
def test_a_failure_is_one_line(arguments, error, capsys):
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    last = err.strip().splitlines()[-1]
    assert last.startswith(f"{error}: ")
    assert "Traceback" not in err


def test_extract_json(tmp_path, capsys):
    path = tmp_path / "page.html.gz"
    path.write_bytes(gzip.compress(PAGE.encode()))
    assert main(["extract", "--json", str(path)]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    page = json.loads(line)
    assert page["title"] == "Bread"
    assert "lights the oven" in page["text"]
    assert {"kind", "text", "level"} <= set(page["blocks"][0])


def test_extract_damaged_gzip(tmp_path, capsys):
    path = tmp_path / "page.html.gz"
    path.write_bytes(b"no gzip")
    assert main(["extract", str(path)]) == 1
    assert capsys.readouterr().err.startswith("UsageError: ")


def test_extract_of_nothing(tmp_path, capsys):
    path = tmp_path / "page.html"
    path.write_text("<html><body></body></html>")
    assert main(["extract", str(path)]) == 1
    assert capsys.readouterr().err.startswith("EmptyPageError: ")


def test_models_json(capsys):
    assert main(["models", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["name"] == "smollm2-135m-instruct"
    assert {"size", "licence", "source", "cached"} <= set(rows[0])


def test_inspect_json(embedded_model, capsys):
    assert main(["models", "--json", "--inspect", str(embedded_model)]) == 0
    description = json.loads(capsys.readouterr().out)
    assert (description["architecture"], description["runs"]) == ("llama", True)


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert pyweb.__version__ in capsys.readouterr().out
