"""Turns a shader template and its numbers into WGSL, and checks it against the device's limits before it is compiled.

Templates are jinja2 (the library already carries the chat templates): `${expr}` inserts, a line that starts with `#%`
is a statement.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from traceback import extract_tb

import jinja2

from pyweb import resources
from pyweb.errors import LimitError, ShaderError

__all__ = ["TEMPLATES", "Shader", "compiled_templates", "compose"]

TEMPLATES = f"templates-{jinja2.__version__}"
"""Folder of compiled templates in a wheel; another version of jinja2 compiles its own."""

_SIZES = {
    "atomic<u32>": 4,
    "f32": 4,
    "u32": 4,
    "i32": 4,
    "vec2<f32>": 8,
    "vec2<u32>": 8,
    "vec4<f32>": 16,
    "vec4<u32>": 16,
    "vec4<i32>": 16,
}
_STORAGE = re.compile(r"var<storage")
_SHARED = re.compile(r"var<workgroup>\s+\w+\s*:\s*array<\s*([\w<>]+?)\s*,\s*(\d+)u?\s*>")
_WORKGROUP = re.compile(r"@workgroup_size\(([\d,\s]+)\)")


@dataclass(frozen=True)
class Shader:
    """Composed WGSL and what it asks of a device."""

    label: str
    code: str
    storage_buffers: int
    shared_bytes: int
    invocations: int


@cache
def _environment() -> jinja2.Environment:
    def source(name: str) -> tuple[str, str, None]:
        try:
            return resources.text("shaders", name), f"shaders/{name}", None
        except OSError as error:
            raise jinja2.TemplateNotFound(name) from error

    sources, compiled = jinja2.FunctionLoader(source), resources.compiled(TEMPLATES)
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.ModuleLoader(compiled), sources]) if compiled else sources,
        undefined=jinja2.StrictUndefined,
        variable_start_string="${",
        variable_end_string="}",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        line_statement_prefix="#%",
        trim_blocks=True,
        keep_trailing_newline=True,
    )


def compiled_templates() -> dict[str, str]:
    """Python modules of all templates by file name: with them in `TEMPLATES` none is compiled where it is used, which
    takes Pyodide half a second."""
    folder, environment = resources.folder("shaders"), _environment()
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.wgsl"))]
    return {
        jinja2.ModuleLoader.get_module_filename(name): environment.compile(
            resources.text("shaders", name), name, f"shaders/{name}", raw=True, defer_init=True
        )
        for name in names
    }


def _render(role: str, values: Mapping[str, object]) -> str:
    file = f"{role}.wgsl"
    try:
        return _environment().get_template(file).render(values)
    except jinja2.TemplateSyntaxError as error:
        raise ShaderError(f"shaders/{error.name or file}, line {error.lineno}: {error.message}.") from error
    except jinja2.TemplateError as error:
        frames = [frame for frame in extract_tb(error.__traceback__) if frame.filename.startswith("shaders/")]
        place = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else f"shaders/{file}"
        raise ShaderError(f"{place}: {error}.") from error


def compose(role: str, values: Mapping[str, object], limits: Mapping[str, int]) -> Shader:
    """WGSL of a kernel role.

    Args:
        role: file name in `shaders/` without its ending.
        values: the template's numbers.
        limits: WebGPU limit names and what the device grants.

    Raises:
        ShaderError: the template has a fault; the message names file and line.
        LimitError: the kernel needs more than the device grants. A kernel over the workgroup-storage limit would write
            zeros in silence.
    """
    code = _render(role, values)
    shared = sum(_SIZES[kind] * int(count) for kind, count in _SHARED.findall(code))
    sizes = _WORKGROUP.search(code)
    if sizes is None:
        raise ShaderError(f"shaders/{role}.wgsl has no @workgroup_size.")
    invocations = 1
    for size in sizes[1].split(","):
        invocations *= int(size)
    shader = Shader(role, code, len(_STORAGE.findall(code)), shared, invocations)
    _check(shader, limits)
    return shader


def _check(shader: Shader, limits: Mapping[str, int]) -> None:
    asked = {
        "maxStorageBuffersPerShaderStage": shader.storage_buffers,
        "maxComputeWorkgroupStorageSize": shader.shared_bytes,
        "maxComputeInvocationsPerWorkgroup": shader.invocations,
    }
    for limit, amount in asked.items():
        if amount > limits[limit]:
            raise LimitError(f"Kernel {shader.label} asks {amount} of {limit}, the device grants {limits[limit]}.")
