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
        (["site", "--out", "x", "--model", "nobody", "--no-model"], "UsageError"),
    ],
)
def test_a_failure_is_one_line(arguments, error, capsys):
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    last = err.strip().splitlines()[-1]
    assert last.startswith(f"{error}: ")
    assert "Traceback" not in err


ASK = ["ask", "--page", "x.html"]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["serve", "--port", "99999"], "'99999' is not a port from 1 to 65535. Run `pyweb serve --help`."),
        ([*ASK, "--max-tokens", "abc", "q"], "'abc' is not a positive whole number."),
        ([*ASK, "--temperature", "nan", "q"], "'nan' is not a number."),
        ([*ASK, "--top-k", "1.5", "q"], "'1.5' is not a whole number."),
        ([*ASK, "--temprature", "1", "q"], "UsageError: There is no option --temprature. Run `pyweb ask --help`."),
        ([*ASK, "--temprature=1", "q"], "UsageError: There is no option --temprature. Run `pyweb ask --help`."),
        ([*ASK, "two", "questions"], "UsageError: The argument 'questions' is one too many."),
        ([*ASK, "--temperature", "-1", "q"], "temperature must be a number from 0 to 100"),
        ([*ASK, "--top-k", "-3", "q"], "top_k must be a whole number"),
        (["extract", "http://a.example/"], "UsageError: `pyweb extract` reads files. Save the page first; `pyweb ask`"),
        (["models", "--inspect", "https://a.example/a.gguf"], "reads files, not URLs."),
        (["models", "--inspect", "/"], "/ is a folder."),
        (["perplexity", "--text", "/no/such", "--tokens", "9"], "can't be read: No such file or directory."),
    ],
)
def test_what_a_failure_says(arguments, said, capsys, monkeypatch):
    monkeypatch.setattr("pyweb.cli.ask.run_job", None)
    assert main(arguments) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", bytes(range(256)) * 9])
def test_extract_of_something_binary(content, tmp_path, capsys):
    (tmp_path / "page.html").write_bytes(content)
    assert main(["extract", str(tmp_path / "page.html")]) == 1
    assert "page.html is no HTML." in capsys.readouterr().err


@pytest.mark.parametrize("content", [PAGE.encode("utf-16"), PAGE.replace("oven", "\0oven", 1).encode()])
def test_extract_of_text_with_zero_bytes(content, tmp_path, capsys):
    (tmp_path / "page.html").write_bytes(content)
    assert main(["extract", str(tmp_path / "page.html")]) == 0
    assert "The baker rises" in capsys.readouterr().out


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


def test_inspect_by_short_name(embedded_model, capsys):
    assert main(["models", "--json", "--inspect", "smollm2-135m-instruct"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"]


def test_site_carries_the_default_model(embedded_model, tmp_path, capsys):
    assert main(["site", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "models" / embedded_model.name).stat().st_size == embedded_model.stat().st_size


def test_site_spares_other_files(tmp_path, capsys):
    bare, index = ["site", "--no-model", "--out", str(tmp_path)], tmp_path / "index.html"
    index.write_text("mine")
    assert main(bare) == 1
    assert "holds other files. Choose an empty folder, or add --force." in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    assert main([*bare, "--force"]) == 0
    assert index.read_text() != "mine"
    assert main(bare) == 0
    assert not list(tmp_path.glob("models/*.gguf"))


def test_names_of_the_package():
    assert {"load", "page_of"} <= set(dir(pyweb)) == set(pyweb.__all__)


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert pyweb.__version__ in capsys.readouterr().out
