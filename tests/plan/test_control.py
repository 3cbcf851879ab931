"""The control buffer as kernels and host see it."""

import re
from struct import pack, unpack

import pytest

from pyweb import resources
from pyweb.errors import UsageError
from pyweb.plan import control


def written(**fields):
    """A read-back whose state, records and ring are as given."""
    state = {"length": 0, "valid": 1, "context_length": 0, "flags": 0, "emitted": 0, "steps": 0, "width": 1, "match": 0}
    state |= {name: value for name, value in fields.items() if name in state}
    records, ring = [0] * (control.RECORDS * 3), [0] * control.RING
    for step, record in fields.get("records", {}).items():
        at = step % control.RECORDS * 3
        records[at : at + 3] = record
    for number, token in fields.get("ring", {}).items():
        ring[number % control.RING] = token
    data = pack(f"<{8 + len(records) + len(ring)}I", *state.values(), *records, *ring)
    assert len(data) == control.READBACK_BYTES
    return control.parse_state(data)


def test_state_round_trip():
    data = control.initial_state(7, 30)
    state = control.parse_state(data)
    assert (state.length, state.context_length, state.flags, state.emitted, state.steps) == (7, 30, 0, 0, 0)
    assert state.finish_reason is None
    assert len(data) == 32


def test_tokens_and_records_from_where_the_host_stopped_reading():
    state = written(emitted=5, steps=2, ring=dict(enumerate([9, 8, 7, 6, 5])), records={0: (3, 0, 4), 1: (2, 1, 4)})
    assert state.tokens(0) == [9, 8, 7, 6, 5]
    assert state.tokens(3) == [6, 5]
    assert state.tokens(5) == []
    assert state.records(0) == [(3, 0, 4), (2, 1, 4)]
    assert state.records(1) == [(2, 1, 4)]
    assert state.records(2) == []


def test_tokens_and_records_wrap():
    first, step = control.RING * 3 - 2, control.RECORDS * 5 - 1
    ring = {first + i: 100 + i for i in range(4)}
    state = written(emitted=first + 4, steps=step + 2, ring=ring, records={step: (1, 2, 3), step + 1: (4, 5, 6)})
    assert state.tokens(first) == [100, 101, 102, 103]
    assert state.records(step) == [(1, 2, 3), (4, 5, 6)]


def test_finish_reason():
    reasons = {0: None, 1: "stop", 2: "length", 4: "length", 6: "length", 3: "stop", 5: "stop"}
    assert {flags: written(flags=flags).finish_reason for flags in reasons} == reasons


def test_two_windows_fit_what_is_kept():
    assert control.RECORDS >= 2 * 32
    assert control.RING >= 2 * 32 * control.LONGEST_PATH


def test_the_kernels_say_the_same():
    """Sizes and order of the struct in the shader are those that the host packs."""
    text = resources.text("shaders", "include/control.wgsl")
    struct = re.search(r"struct Control \{(.*?)\n\}", text, re.S)[1]
    fields = re.findall(r"^\s*(\w+):", struct, re.M)
    assert f"array<vec4<u32>, {control.MAX_NODES}>" in struct
    assert fields[0] == "nodes" and len(fields) == 1 + 32 // 4
    state = control.initial_state(1, 2)
    numbers = dict(zip(fields[1:], unpack("<8I", state), strict=True))
    assert {name: value for name, value in numbers.items() if value} == {"length": 1, "context_length": 2}
    flags = {name: int(value) for name, value in re.findall(r"const FINISHED_(\w+) = (\d+)u", text)}
    assert flags == {"STOP": 1, "LIMIT": 2, "CONTEXT": 4}


def test_request():
    data = control.request_bytes(100, 4096, 17, [2, 5])
    assert unpack("<16I", data) == (100, 4096, 17, 2, 2, 5, *[0] * 10)
    assert len(data) == control.REQUEST_BYTES
    assert len(control.request_bytes(1, 2, 3, range(control.MAX_STOPS))) == control.REQUEST_BYTES
    with pytest.raises(UsageError, match="13"):
        control.request_bytes(1, 2, 3, range(13))
