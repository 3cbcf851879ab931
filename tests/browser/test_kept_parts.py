"""Parts of model files that the browser keeps (OPFS): damaged ones, full disks, several tabs, workers and windows."""

import json

import pytest

from tests.browser.model_server import HASH, HELPERS, PART, SIZE

WHOLE = {"hash": HASH, "fetched": SIZE, "notKept": ""}
ALL_KEPT = WHOLE | {"fetched": 0}
NOTE = 4096


DAMAGE = """
const handle = await (await kept()).getFileHandle('1');
const access = await handle.createSyncAccessHandle();
const byte = new Uint8Array(1);
if (args.flip !== undefined) {
  access.read(byte, { at: args.flip });
  byte[0] ^= 1;
  access.write(byte, { at: args.flip });
}
if (args.cut !== undefined) access.truncate(args.cut);
if (args.zero !== undefined) access.write(new Uint8Array(args.zero), { at: 0 });
if (args.grow) access.write(new Uint8Array(args.grow), { at: access.getSize() });
access.close();
return {};
"""


@pytest.mark.parametrize(
    "damage",
    [
        {"flip": NOTE},
        {"flip": NOTE + PART - 1},
        {"flip": 0},
        {"flip": 40},
        {"cut": NOTE + PART - 1},
        {"cut": NOTE},
        {"cut": 30},
        {"cut": 0},
        {"zero": NOTE},
        {"zero": NOTE + PART},
    ],
    ids=json.dumps,
)
def test_a_damaged_part_is_fetched_again_and_kept_again(visit, damage):
    assert visit() == WHOLE
    assert visit(DAMAGE, **damage) == {}
    assert visit() == WHOLE | {"fetched": PART}
    assert visit() == ALL_KEPT


def test_bytes_behind_a_part_do_no_harm(visit):
    visit()
    visit(DAMAGE, grow=100)
    assert visit() == ALL_KEPT


def test_a_damaged_part_that_cannot_be_fetched_is_not_used(visit, server):
    visit()
    visit(DAMAGE, flip=NOTE + 77)
    server.offline = True
    assert visit()["error"] == "NetworkError"
    assert visit("return visit({ url: undefined });")["error"] == "ModelFileError"


def test_parts_that_changed_places_are_not_used(visit):
    visit()
    swap = """
    const folder = await kept();
    const bytes = async (name) => (await (await folder.getFileHandle(name)).getFile()).arrayBuffer();
    const [first, second] = [await bytes('0'), await bytes('1')];
    for (const [name, content] of [['0', second], ['1', first]]) {
      const stream = await (await folder.getFileHandle(name)).createWritable();
      await stream.write(content);
      await stream.close();
    }
    return {};
    """
    assert visit(swap) == {}
    assert visit() == WHOLE | {"fetched": 2 * PART}


def test_a_window_keeps_and_reads_parts_as_a_worker_does(visit):
    assert visit(where="window") == WHOLE
    assert visit(where="window") == ALL_KEPT
    assert visit() == ALL_KEPT
    visit(DAMAGE, flip=NOTE + 9)
    assert visit(where="window") == WHOLE | {"fetched": PART}


def test_a_browser_without_any_way_to_write(visit):
    body = "delete FileSystemFileHandle.prototype.createWritable; return visit();"
    assert visit(body, where="window") == WHOLE | {"notKept": "NotSupportedError"}


def test_a_private_window(visit):
    body = """
    StorageManager.prototype.getDirectory = async () => { throw new DOMException('no', 'SecurityError'); };
    return visit();
    """
    assert visit(body) == WHOLE | {"notKept": "SecurityError"}


def test_nothing_is_kept_where_that_is_not_wanted(visit):
    assert visit("return visit({ keep: false });") == WHOLE
    assert visit() == WHOLE


# A worker's file grows to powers of two, and is cut when it is closed.
@pytest.mark.parametrize("where, quota", [("worker", 40 << 20), ("window", 20 << 20)])
def test_a_disk_that_is_full_costs_no_answer(visit, browser, server, where, quota):
    origin = server.url.rstrip("/")
    browser.execute_cdp_cmd("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": quota})
    try:
        assert visit(where=where) == WHOLE | {"notKept": "QuotaExceededError"}
        rest = WHOLE | {"fetched": SIZE - PART}
        assert visit(where=where) == rest | {"notKept": "QuotaExceededError"}
    finally:
        browser.execute_cdp_cmd("Storage.overrideQuotaForOrigin", {"origin": origin})
    assert visit(where=where) == rest
    assert visit(where=where) == ALL_KEPT


def test_a_write_that_ends_early_counts_as_a_full_disk(visit):
    body = """
    const { write } = FileSystemSyncAccessHandle.prototype;
    FileSystemSyncAccessHandle.prototype.write = function (bytes, options) {
      return write.call(this, bytes.subarray(0, 1000), options);
    };
    return visit();
    """
    assert visit(body) == WHOLE | {"notKept": "QuotaExceededError"}
    assert visit() == WHOLE


def test_a_name_that_is_no_file_name_and_an_address_that_is_too_long(visit):
    assert visit("return visit({ name: 'a/b c:d' });") == WHOLE
    assert visit("return visit({ name: 'a/b c:d' });") == ALL_KEPT
    assert visit("return visit({ name: '..' });")["notKept"] == "TypeError"
    long = "return visit({ url: `${url}/${'x'.repeat(5000)}`, name: 'long' });"
    assert visit(long) == WHOLE | {"notKept": "NotSupportedError"}


TABS = """
const script = `self.onmessage = async ({ data: [base, args] }) => {
  ${helpers}
  visit().then(postMessage, (error) => postMessage({ error: error.name, message: error.message }));
}`;
const address = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
const one = () => new Promise((resolve) => {
  const worker = new Worker(address);
  worker.onmessage = ({ data }) => { worker.terminate(); resolve(data); };
  worker.postMessage([base, {}]);
});
return Promise.all([one(), one(), one()]);
"""


@pytest.mark.parametrize("pace", [0, 0.01])
def test_tabs_that_load_together_spoil_nothing(visit, server, pace):
    server.pace = pace
    results = visit(f"const helpers = {json.dumps(HELPERS)};{TABS}")
    assert [result["hash"] for result in results] == [HASH] * 3
    assert [result["notKept"] for result in results] == [""] * 3
    server.pace = 0
    assert visit() == ALL_KEPT


def test_a_part_that_another_tab_writes_is_read_or_fetched(visit):
    hold = """
    const access = await (await (await kept()).getFileHandle('1')).createSyncAccessHandle();
    const before = await visit();
    access.write(new Uint8Array(9), { at: 5000 });
    access.flush();
    const during = await visit();
    access.close();
    return { before, during, after: await visit(), last: await visit() };
    """
    visit()
    result = visit(hold)
    assert result["before"] == ALL_KEPT
    assert result["during"] == WHOLE | {"fetched": PART}
    assert result["after"] == WHOLE | {"fetched": PART}
    assert result["last"] == ALL_KEPT
