"""Model files by byte range, in a real browser's worker, from a server that fails in every way that servers do."""

import time

import pytest

from tests.browser.model_server import CONTENT, HASH, PART, SIZE, file_content, sha256

OTHER = file_content(seed=2)
PARTS = [sha256(CONTENT[at : at + PART]) for at in range(0, SIZE, PART)]
RANGES = [f"{at}-{min(at + PART, SIZE) - 1}" for at in range(0, SIZE, PART)]
PROBE = "0-0"


def test_the_second_visit_asks_for_the_version_only(visit, server):
    assert visit() == {"hash": HASH, "fetched": SIZE, "notKept": ""}
    assert server.asked == [PROBE, *RANGES]
    server.forget()
    assert visit() == {"hash": HASH, "fetched": 0, "notKept": ""}
    assert server.asked == [PROBE]


def test_a_part_that_breaks_off_goes_on_where_it_broke(visit, server):
    server.cuts = [PART, 5_000_000, 7_000_000]
    assert visit()["hash"] == HASH
    starts = [int(asked.split("-")[0]) for asked in server.asked[1:]]
    assert starts == [0, PART, PART + 5_000_000, PART + 12_000_000, 2 * PART]
    assert server.sent == SIZE + 1


def test_a_busy_server_is_asked_again_and_a_missing_file_is_not(visit, server):
    server.statuses = [503, 429]
    assert visit()["hash"] == HASH
    server.forget()
    server.statuses = [404]
    failed = visit("return visit({ name: 'other' });")
    assert failed["error"] == "NetworkError" and "404" in failed["message"]
    assert server.asked == [PROBE]


def test_what_was_received_before_the_network_went_is_not_fetched_again(visit, server):
    server.cuts = [PART, 1000, 0, 0, 0, 0]
    failed = visit()
    assert failed["error"] == "NetworkError" and failed["message"].endswith(".")
    server.forget()
    server.cuts = []
    assert visit() == {"hash": HASH, "fetched": SIZE - PART, "notKept": ""}
    assert server.asked == [PROBE, *RANGES[1:]]


def test_a_silent_server_counts_as_broken(visit, server):
    server.pace = 3
    failed = visit("return visit({}, { waits: [], stall: 300 });")
    assert failed["error"] == "NetworkError" and "nothing came" in failed["message"]


def test_without_a_network_a_whole_file_is_used_and_half_of_one_is_not(visit, server):
    visit("const source = await open(); await source.part(0); source.close(); return {};")
    server.offline = True
    assert visit()["error"] == "NetworkError"
    server.offline = False
    visit()
    server.offline = True
    assert visit() == {"hash": HASH, "fetched": 0, "notKept": ""}
    assert visit("return visit({ url: base + 'model.gguf?other' });")["hash"] == HASH
    assert visit("return visit({ url: base + 'elsewhere.gguf' });")["error"] == "NetworkError"
    assert visit("return visit({ url: undefined });") == {"hash": HASH, "fetched": 0, "notKept": ""}
    assert visit("return visit({ url: undefined, name: 'none' });")["error"] == "ModelFileError"


def test_known_parts_need_no_version_and_any_mirror_will_do(visit, server):
    known = {"size": SIZE, "parts": PARTS}
    assert visit(model=known | {"file": "the registry's name of it.gguf"})["hash"] == HASH
    assert server.asked == RANGES
    server.forget()
    server.etag = '"another host"'
    assert visit("return visit({ ...args.model, url: base + 'mirror.gguf' });", model=known)["fetched"] == 0
    assert server.asked == []
    wrong = visit("return visit({ ...args.model, name: 'w' });", model=known | {"parts": [PARTS[0], *PARTS[:2]]})
    assert wrong["error"] == "IntegrityError" and "Part 2 of w" in wrong["message"]


@pytest.mark.parametrize("known", [{}, {"size": SIZE, "parts": PARTS}])
def test_a_server_without_ranges_sends_the_file_once(visit, server, known):
    server.ranges = False
    assert visit(model=known) == {"hash": HASH, "fetched": SIZE, "notKept": ""}
    assert len(server.asked) == 1
    assert visit(model=known)["fetched"] == 0


def test_a_server_without_ranges_that_breaks_off_starts_over(visit, server):
    server.ranges = False
    server.cuts = [PART + 5_000_000]
    assert visit()["hash"] == HASH
    assert len(server.asked) == 2
    server.forget()
    back = "const source = await open({ keep: false }); await source.part(2); return readAll(source);"
    assert visit(back)["hash"] == HASH
    assert len(server.asked) == 2


def test_a_server_that_hides_the_size_is_asked_for_it(visit, server):
    server.headers = {"Content-Range": None}
    assert visit()["hash"] == HASH
    assert server.asked == [PROBE, "HEAD", *RANGES]


def test_a_server_that_does_not_know_the_size(visit, server):
    server.ranges = False
    server.headers = {"Content-Length": None}
    failed = visit()
    assert failed["error"] == "NetworkError" and "how long" in failed["message"]
    assert visit(model={"size": SIZE})["hash"] == HASH


def test_a_size_other_than_the_registry_says(visit):
    failed = visit(model={"size": SIZE - 1})
    assert failed["error"] == "IntegrityError" and str(SIZE) in failed["message"]


def test_an_empty_file(visit, server):
    server.statuses = [416]
    assert visit()["error"] == "ModelFileError"


def test_bytes_of_another_place_are_not_used(visit, server):
    server.headers = {"Content-Range": f"bytes 7-{SIZE - 1}/{SIZE}"}
    assert visit()["error"] == "NetworkError"


@pytest.mark.parametrize("ranges", [True, False])
def test_versions_never_mix_in_a_load(visit, server, ranges):
    server.ranges = ranges
    one, two = (CONTENT, '"one"'), (OTHER, '"two"')
    server.versions = [one, one, two] if ranges else [one, two]
    server.cuts = [] if ranges else [PART + 1000]
    failed = visit()
    assert failed["error"] == "IntegrityError" and "changed" in failed["message"]
    assert visit() == {"hash": sha256(OTHER), "fetched": SIZE, "notKept": ""}


def test_versions_never_mix_between_visits(visit, server):
    visit("const source = await open(); await source.part(0); source.close(); return {};")
    server.content, server.etag = OTHER, '"two"'
    assert visit() == {"hash": sha256(OTHER), "fetched": SIZE, "notKept": ""}
    server.content, server.etag = OTHER[: PART + 5], '"three"'
    assert visit()["hash"] == sha256(OTHER[: PART + 5])
    names = visit("const n = []; for await (const name of (await kept()).keys()) n.push(name); return n.sort();")
    assert names == ["0", "1"]


def test_without_a_validator_half_a_file_is_not_continued(visit, server):
    server.etag = None
    visit("const source = await open(); await source.part(0); source.close(); return {};")
    server.content = OTHER
    assert visit() == {"hash": sha256(OTHER), "fetched": SIZE, "notKept": ""}
    assert visit()["fetched"] == 0


CANCEL = """
const signal = weights.signal();
const start = performance.now();
let stopped = 0;
const stop = () => { stopped = performance.now(); signal.stop(); };
const options = { signal, waits: [60000] };
if (args.stage === 'part') options.onProgress = (done) => done > 3e6 && !stopped && stop();
else setTimeout(stop, 400);
try {
  await visit({ name: args.stage }, options);
} catch (error) {
  return { error: error.name, ms: performance.now() - stopped, stopped: signal.stopped };
}
"""


@pytest.mark.parametrize("stage", ["answer", "part", "pause"])
def test_a_load_is_cancelled_at_once(visit, server, stage):
    if stage == "part":
        server.pace = 0.05
    elif stage == "pause":
        server.cuts = [1000]
    else:
        server.pace = 2
        server.ranges = False
    result = visit(CANCEL, stage=stage)
    assert result["error"] == "StoppedError" and result["stopped"]
    assert result["ms"] < 300
    if stage == "part":
        time.sleep(0.5)
        assert server.sent < PART // 2


def test_an_abort_signal_serves_as_well(visit, server):
    assert visit("return visit({}, { signal: AbortSignal.abort() });")["error"] == "StoppedError"
    assert server.asked == []


def test_progress_counts_bytes_and_estimates_the_rest(visit, server):
    server.pace = 0.02
    body = """
    const seen = [];
    const source = await open({}, { onProgress: (...report) => seen.push(report) });
    await source.read(0, 100);
    await source.read(0, 100);
    await readAll(source);
    return { seen, left: source.secondsLeft };
    """
    start = time.monotonic()
    result = visit(body)
    seconds = time.monotonic() - start
    done = [report[0] for report in result["seen"]]
    assert done == sorted(set(done)) and done[-1] == SIZE and len(done) > 5
    assert {report[1] for report in result["seen"]} == {SIZE}
    estimates = [report[2] for report in result["seen"] if report[2] is not None]
    assert len(estimates) > 3 and max(estimates) < 2 * seconds + 1
    assert result["left"] == estimates[-1] == 0


PROGRESS = """
const { Progress } = await import(base + 'js_bridge/progress.js');
let now = 0;
const progress = new Progress(1000, () => now);
const lefts = [];
progress.at(0, 400, true);
lefts.push(progress.left);
for (let second = 0; second <= 4; second++, now += 1000) {
  progress.at(1, 50 * (second + 1));
  lefts.push(progress.left);
}
progress.at(1, 10);
now += 60000;
return { lefts: lefts.map((left) => left ?? null), done: progress.done, late: progress.left };
"""


def test_the_estimate_is_of_the_connection_and_not_of_the_disk(visit):
    result = visit(PROGRESS)
    assert result["lefts"][:2] == [None, None]
    assert result["lefts"][2:] == pytest.approx([10, 9, 8, 7])
    assert result["done"] == 650
    assert result["late"] > 60


def test_a_picked_file_is_read_where_it_lies(visit, server, browser, tmp_path):
    path = tmp_path / "picked.gguf"
    path.write_bytes(CONTENT)
    browser.find_element("css selector", "input").send_keys(str(path))
    pick = "const model = { url: undefined, file: args.file, name: args.file.name, keep: args.keep };"
    assert visit(pick + "return visit(model);") == {"hash": HASH, "fetched": SIZE, "notKept": ""}
    assert visit(pick + "return visit(model);", keep=True)["fetched"] == SIZE
    assert visit(pick + "return visit(model);", keep=True)["fetched"] == 0
    assert visit("return visit({ url: undefined, name: 'picked.gguf' });")["hash"] == HASH
    path.write_bytes(b"gone")
    failed = visit(pick + "return visit(model);")
    assert failed["error"] == "ModelFileError" and "picked.gguf" in failed["message"]
    assert server.asked == []
