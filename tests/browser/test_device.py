"""What the bridge says when the GPU is missing, too small, full or gone, in a real browser."""

import pytest

from pyweb import errors
from tests.browser.model_server import ModelServer, Visitor, file_content

HELPERS = """
const gpu = await import(base + 'js_bridge/gpu.js');
const caught = async (act) => {
  const start = performance.now();
  try {
    return { value: (await act()) ?? null };
  } catch (error) {
    return { error: error.name, message: error.message, ms: performance.now() - start };
  }
};
const ADD = `@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(1) fn main() { data[0] += 1; }`;
const ready = async () => {
  const bridge = await gpu.open();
  const buffer = await bridge.buffer(4096, 'numbers');
  const [pipeline] = await bridge.compile([['add', ADD]]);
  const group = bridge.bind(pipeline, [buffer, 0, 4096]);
  const program = bridge.program([pipeline, group, 1, 1, 1]);
  return { bridge, buffer, pipeline, program };
};
/** The browser's own GPU with an adapter that `change` made another one of. */
const changed = (change) => ({
  async requestAdapter() {
    const adapter = await navigator.gpu.requestAdapter();
    const { limits, features, info } = adapter;
    return { limits, features, info, requestDevice: (wanted) => adapter.requestDevice(wanted), ...change(adapter) };
  },
});
"""


@pytest.fixture(scope="module")
def server():
    with ModelServer(file_content()) as server:
        yield server


@pytest.fixture(params=["worker", "window"])
def run(browser, server, request):
    """Runs the body of an async function; checks that each error in its result is one of pyweb's."""
    visit = Visitor(browser, server)

    def run(body: str, **args: object):
        result = visit(HELPERS + body, where=request.param, **args)
        for one in [result, *result.values()] if isinstance(result, dict) else result:
            if isinstance(one, dict) and "error" in one:
                assert issubclass(getattr(errors, one["error"]), errors.PywebError), one
                assert one["message"].endswith(".") and not one["message"].endswith("..")
        return result

    return run


@pytest.mark.parametrize(
    "opened, name, words",
    [
        ("null", "NoWebGPUError", "no WebGPU"),
        ("{ requestAdapter: async () => null }", "NoAdapterError", "no graphics adapter"),
        ("{ requestAdapter: async () => { throw new Error('blocked'); } }", "NoAdapterError", "blocked"),
        ("changed(() => ({ limits: { maxBufferSize: 2 ** 50 } }))", "LimitError", "maxBufferSize"),
        (
            "changed(() => ({ requestDevice: async () => { throw new DOMException('gone', 'AbortError'); } }))",
            "NoAdapterError",
            "gone",
        ),
    ],
    ids=["no WebGPU", "no adapter", "refused", "limits", "no device"],
)
def test_no_device(run, opened, name, words):
    before = "globalThis.setTimeout = ((set) => (act, ms) => set(act, ms / 100))(setTimeout);"
    result = run(f"{before} return caught(async () => void (await gpu.open({opened})));")
    assert result["error"] == name and words in result["message"]


def test_an_adapter_that_comes_late_is_found(run):
    result = run("""
    let asked = 0;
    const late = { requestAdapter: async (wanted) => (asked++ ? navigator.gpu.requestAdapter(wanted) : null) };
    (await gpu.open(late)).close();
    return { asked };
    """)
    assert result["asked"] >= 2


def test_a_buffer_over_the_limit_or_over_the_memory(run):
    result = run("""
    const { bridge } = await ready();
    const over = await caught(() => bridge.buffer(bridge.limits.maxBufferSize + 4, 'cache'));
    const still = await caught(() => bridge.buffer(16));
    bridge.device.popErrorScope = async () => new GPUOutOfMemoryError('full');
    const full = await caught(() => bridge.buffer(4096, 'layer 3'));
    return { over, still, full };
    """)
    assert result["over"]["error"] == "LimitError" and "cache" in result["over"]["message"]
    assert result["still"]["value"] > 0
    assert result["full"]["error"] == "GPUOutOfMemoryError" and "layer 3" in result["full"]["message"]


def test_errors_that_nobody_waited_for_end_the_next_call(run):
    result = run("""
    const fault = async (act) => {
      const made = await ready();
      await act(made);
      await made.bridge.device.queue.onSubmittedWorkDone();
      await new Promise((resolve) => setTimeout(resolve, 50));
      const result = await caught(() => made.bridge.submit(made.program));
      made.bridge.destroy(made.buffer);
      made.bridge.close();
      return result;
    };
    const raise = (error) => ({ bridge }) =>
      bridge.device.dispatchEvent(new GPUUncapturedErrorEvent('uncapturederror', { error }));
    return {
      invalid: await fault(({ bridge, pipeline, buffer }) => bridge.bind(pipeline, [buffer, 0, 8192])),
      memory: await fault(raise(new GPUOutOfMemoryError('The memory is full.'))),
    };
    """)
    assert result["invalid"]["error"] == "ShaderError"
    assert result["memory"]["error"] == "GPUOutOfMemoryError"


def test_a_shader_with_a_mistake_says_where(run):
    result = run("""
    const { bridge } = await ready();
    return caught(() => bridge.compile([['good', ADD], ['bad', ADD.replace('data[0]', 'date[0]')]]));
    """)
    assert result["error"] == "ShaderError"
    assert result["message"].startswith("bad: line 2: ") and "date" in result["message"]


def test_every_call_on_a_lost_device_says_so(run):
    result = run("""
    const { bridge, buffer, pipeline, program } = await ready();
    bridge.device.destroy();
    await bridge.lost;
    const calls = {
      buffer: () => bridge.buffer(16),
      write: () => bridge.write(buffer, 0, new Uint8Array(4)),
      compile: () => bridge.compile([['add', ADD]]),
      bind: () => bridge.bind(pipeline, [buffer, 0, 16]),
      program: () => bridge.program([]),
      submit: () => bridge.submit(program),
      check: () => bridge.check(),
    };
    const results = [];
    for (const act of Object.values(calls)) results.push(await caught(act));
    bridge.destroy(buffer);
    bridge.destroy(buffer);
    bridge.close();
    return [...results, { value: bridge.counters().submits }];
    """)
    assert {one["error"] for one in result[:-1]} == {"DeviceLostError"}
    assert all("destroyed" in one["message"] for one in result[:-1])


def test_what_was_under_way_when_the_device_was_lost(run):
    result = run("""
    const { bridge, buffer, program } = await ready();
    const tickets = [];
    for (let i = 0; i < 3; i++) tickets.push(bridge.submit(program, 200, [buffer, 0, 4096]));
    const pending = tickets.map((ticket) => caught(() => bridge.collect(ticket)));
    const room = caught(() => bridge.buffer(1 << 20));
    const built = caught(() => bridge.compile([['other', ADD.replace('+= 1', '+= 2')]]));
    bridge.device.destroy();
    const late = caught(() => bridge.collect(bridge.submit(program)));
    return Promise.all([...pending, room, built, late]);
    """)
    named = [one["error"] for one in result if "error" in one]
    assert set(named) == {"DeviceLostError"} and len(named) >= 4
    assert all(one["ms"] < 900 for one in result if "error" in one)


LOAD = """
const bridge = await gpu.open();
const buffer = await bridge.buffer(1 << 20);
const source = await open({ name: args.name, keep: false });
const signal = weights.signal();
const steps = [4, 1 << 20, buffer, 0, 0];
let at = 0;
const act = () => { at = performance.now(); args.how === 'lost' ? bridge.device.destroy() : signal.stop(); };
const onProgress = (done) => { if (done > 20e6 && !at) act(); };
const result = await caught(() => weights.load(bridge, source, steps, onProgress, signal));
return { ...result, late: performance.now() - at };
"""


@pytest.mark.parametrize("how, name", [("lost", "DeviceLostError"), ("stop", "StoppedError")])
def test_a_load_ends_at_once(run, server, how, name):
    server.pace = 0.02
    try:
        result = run(LOAD, how=how)
    finally:
        server.pace = 0
    assert result["error"] == name
    assert result["late"] < 300


def test_a_load_waits_for_the_gpu_and_can_be_stopped_there(run):
    result = run("""
    const bridge = await gpu.open();
    const buffer = await bridge.buffer(1 << 20);
    const source = await open({ keep: false });
    const signal = weights.signal();
    bridge.collect = () => { setTimeout(() => signal.stop(), 50); return new Promise(() => {}); };
    return caught(() => weights.load(bridge, source, [0, 100, buffer, 0, 0], () => {}, signal));
    """)
    assert result["error"] == "StoppedError"


def test_bytes_of_several_parts_arrive_in_their_buffers(run):
    result = run("""
    const { bridge, program } = await ready();
    const source = await open();
    const across = await bridge.buffer(9000);
    const odd = await bridge.buffer(64);
    const steps = [100, 50, odd, 0, program, parts.PART - 4000, 9000, across, 0, 0];
    const seen = [];
    await weights.load(bridge, source, steps, (...report) => seen.push(report));
    const bytes = await bridge.collect(bridge.submit(0, 1, [across, 0, 9000, odd, 0, 52]));
    const wanted = [...(await source.read(parts.PART - 4000, 9000)), ...(await source.read(100, 50))];
    const same = wanted.every((byte, i) => byte === bytes[i]);
    source.close();
    bridge.close();
    return { same, first: seen[0], last: seen.at(-1), size: source.size };
    """)
    assert result["same"]
    assert result["last"] == [result["size"], result["size"], 0]


def test_a_gpu_process_that_crashes_and_a_new_device_after_it(other_browser, server):
    visit = Visitor(other_browser, server)
    start = HELPERS + "globalThis.made = await ready(); return {};"
    assert visit(start, where="window") == {}
    other_browser.execute_cdp_cmd("Browser.crashGpuProcess", {})
    after = """
    await made.bridge.lost;
    const dead = await caught(() => made.bridge.submit(made.program));
    const { bridge, buffer, program } = await ready();
    const bytes = await bridge.collect(bridge.submit(program, 3, [buffer, 0, 4]));
    return { dead, alive: bytes[0] };
    """
    result = visit(HELPERS + after, where="window")
    assert result["dead"]["error"] == "DeviceLostError" and "unknown" in result["dead"]["message"]
    assert result["alive"] == 3
