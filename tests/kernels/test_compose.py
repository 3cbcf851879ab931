import pytest

from pyweb.errors import LimitError, ShaderError
from pyweb.kernels import compose as module
from pyweb.kernels.compose import compose

LIMITS = {
    "maxStorageBuffersPerShaderStage": 8,
    "maxComputeWorkgroupStorageSize": 16384,
    "maxComputeInvocationsPerWorkgroup": 256,
}
QUANTIZE = {"K": 64, "THREADS": 32}


@pytest.fixture
def template(monkeypatch):
    """Lets a test put templates in place of shaders/."""
    files = {}

    def text(folder, name):
        if name not in files:
            raise FileNotFoundError(name)
        return files[name]

    monkeypatch.setattr(module.resources, "text", text)
    module._environment.cache_clear()
    yield files
    module._environment.cache_clear()


def test_what_a_kernel_asks_is_counted(template):
    template["k.wgsl"] = """
@group(0) @binding(0) var<uniform> u: U;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read_write> b: array<f32>;
var<workgroup> x: array<f32, ${N}>;
var<workgroup> y: array<vec4<f32>, 16>;
@compute @workgroup_size(8, 4)
fn main() {}
"""
    shader = compose("k", {"N": 100}, LIMITS)
    assert (shader.storage_buffers, shader.shared_bytes, shader.invocations) == (2, 100 * 4 + 16 * 16, 32)
    assert "array<f32, 100>" in shader.code


@pytest.mark.parametrize(
    "limit, granted, asked",
    [
        ("maxStorageBuffersPerShaderStage", 1, 2),
        ("maxComputeWorkgroupStorageSize", 399, 400),
        ("maxComputeInvocationsPerWorkgroup", 31, 32),
    ],
)
def test_a_limit_names_kernel_limit_asked_and_available(template, limit, granted, asked):
    template["greedy.wgsl"] = """
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<f32>;
var<workgroup> x: array<u32, 100>;
@compute @workgroup_size(32)
fn main() {}
"""
    compose("greedy", {}, LIMITS | {limit: asked})
    with pytest.raises(LimitError) as caught:
        compose("greedy", {}, LIMITS | {limit: granted})
    for word in ("greedy", limit, str(asked), str(granted)):
        assert word in caught.value.sentence


def test_a_syntax_error_names_file_and_line(template):
    template["k.wgsl"] = "// one\n// two\n#% for\n"
    with pytest.raises(ShaderError, match=r"shaders/k\.wgsl, line 3"):
        compose("k", {}, LIMITS)


def test_a_syntax_error_in_an_included_file_names_that_file(template):
    template["k.wgsl"] = '#% include "include/part.wgsl"\n'
    template["include/part.wgsl"] = "// one\n${ 1 + }\n"
    with pytest.raises(ShaderError, match=r"shaders/include/part\.wgsl, line 2"):
        compose("k", {}, LIMITS)


def test_a_missing_value_names_file_line_and_value(template):
    template["k.wgsl"] = "// one\nconst A = ${WIDTH}u;\n@compute @workgroup_size(1) fn main() {}\n"
    with pytest.raises(ShaderError, match=r"shaders/k\.wgsl, line 2: .*WIDTH"):
        compose("k", {}, LIMITS)


def test_a_missing_value_in_an_included_file_names_that_file(template):
    template["k.wgsl"] = '// one\n#% include "include/part.wgsl"\n'
    template["include/part.wgsl"] = "// one\n// two\nconst A = ${WIDTH}u;\n"
    with pytest.raises(ShaderError, match=r"shaders/include/part\.wgsl, line 3: .*WIDTH"):
        compose("k", {}, LIMITS)


def test_a_missing_file(template):
    template["k.wgsl"] = '#% include "include/nowhere.wgsl"\n'
    with pytest.raises(ShaderError, match=r"shaders/k\.wgsl.*nowhere"):
        compose("k", {}, LIMITS)
    with pytest.raises(ShaderError, match="nothing"):
        compose("nothing", {}, LIMITS)


def test_a_kernel_without_a_workgroup_size(template):
    template["k.wgsl"] = "fn main() {}\n"
    with pytest.raises(ShaderError, match=r"shaders/k\.wgsl"):
        compose("k", {}, LIMITS)


def test_a_real_kernel_over_the_limit_raises():
    assert compose("quantize", QUANTIZE, LIMITS).invocations == 32
    with pytest.raises(LimitError, match="quantize"):
        compose("quantize", QUANTIZE | {"THREADS": 512}, LIMITS)


def test_templates_of_a_wheel_compose_the_same(tmp_path, monkeypatch):
    values = {"K": 64, "EPS": 1e-5, "THREADS": 8}
    source = compose("norm_quantize", values, LIMITS).code
    for name, code in module.compiled_templates().items():
        (tmp_path / name).write_text(code)
    monkeypatch.setattr(module.resources, "compiled", lambda name: tmp_path)
    monkeypatch.setattr(module.resources, "text", None)  # no template is read
    module._environment.cache_clear()
    try:
        assert compose("norm_quantize", values, LIMITS).code == source
    finally:
        module._environment.cache_clear()
