"""The model's own chat template, run in jinja2's sandbox as `transformers` runs it."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from pyweb.errors import TemplateError

__all__ = ["ChatTemplate"]

_PLAIN = """\
{%- for message in messages %}
{{- message.role | capitalize + ': ' + message.content + '\n\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"""


class ChatTemplate:
    """Turns messages into the text of a prompt.

    Args:
        source: the template, of the metadata key `tokenizer.chat_template`; None takes a plain one.
        special: names that the template may use, such as `bos_token`, with the tokens' texts.

    Attributes:
        plain: True where the model brought no template.

    Raises:
        TemplateError: the template is not valid.
    """

    def __init__(self, source: str | None, special: Mapping[str, str]):
        self.plain = source is None
        self._special = {"bos_token": "", "eos_token": "", **special}
        try:
            self._template = _environment().from_string(_PLAIN if source is None else source)
        except (jinja2.TemplateError, RecursionError) as cause:
            raise TemplateError(_sentence("is not valid", cause)) from None

    def render(self, messages: Sequence[Mapping[str, object]], add_generation_prompt: bool = True) -> str:
        """The prompt's text, which ends where the reply begins.

        Args:
            messages: each with `role` (system, user, assistant) and `content`.

        Raises:
            TemplateError: with the template's own message where it refuses the messages.
        """
        try:
            return self._template.render(
                messages=[dict(message) for message in messages],
                add_generation_prompt=add_generation_prompt,
                **self._special,
            )
        except Exception as cause:  # a template is foreign code: it can raise anything
            raise TemplateError(_sentence("failed", cause)) from None


class _Generation(Extension):
    """`{% generation %}` marks the assistant's words for training; here its content stands for itself."""

    tags = frozenset(("generation",))

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment


def _to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False) -> str:
    """JSON as it is; jinja2's own filter escapes for HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _refuse(message):
    raise jinja2.TemplateError(message)


def _sentence(what: str, cause: Exception) -> str:
    reason = " ".join(str(cause).split()) or type(cause).__name__
    return f"The model's chat template {what}: {reason[:300].rstrip('.')}."
