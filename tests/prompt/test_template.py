import jinja2
import pytest

from pyweb.errors import TemplateError
from pyweb.prompt import ChatTemplate

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <b> & 'you'"}]


def rendered(source, messages=MESSAGES, **special):
    return ChatTemplate(source, special).render(messages)


def test_the_embedded_models_template(template):
    assert not template.plain
    assert template.render(MESSAGES) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\nHi <b> & 'you'<|im_end|>\n<|im_start|>assistant\n"
    )


def test_the_reply_is_begun_only_on_request(template):
    assert not template.render(MESSAGES, add_generation_prompt=False).endswith("assistant\n")


def test_blocks_leave_no_white_space():
    source = "  {% for message in messages %}\n{{ message.role }}\n  {% endfor %}\nend"
    assert rendered(source) == "system\nuser\nend"


def test_special_tokens_by_name():
    assert rendered("{{ bos_token }}|{{ eos_token }}|{{ pad_token }}", bos_token="<s>") == "<s>||"


def test_what_templates_expect_of_transformers():
    assert rendered("{{ {'a': '<é>'} | tojson }}") == '{"a": "<é>"}'
    assert rendered("{{ [1] | tojson(indent=1) }}") == "[\n 1\n]"
    assert (
        rendered("{% for m in messages %}{% if m.role == 'user' %}{% break %}{% endif %}x{% endfor %}") == "x"
    )
    assert len(rendered("{{ strftime_now('%Y') }}")) == 4
    assert rendered("{% generation %}{{ messages[1].role }}{% endgeneration %}.") == "user."


def test_the_templates_own_message_is_in_the_error():
    with pytest.raises(TemplateError, match=r"failed: Only user messages are supported\. ") as caught:
        rendered("{{ raise_exception('Only user messages are supported.') }}")
    assert caught.value.remedy


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages[0].content + 1 }}",
        "{{ messages[9].content.upper() }}",
        "{{ nothing.at.all }}",
        "{{ 1 / 0 }}",
        "{% include 'other' %}",
        "{{ messages.append(1) }}",
        "{{ messages.__class__.__mro__[1].__subclasses__() }}",
        "{% for i in range(10 ** 9) %}{% endfor %}",
        "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
    ],
)
def test_a_template_that_fails(source):
    with pytest.raises(TemplateError, match=r"The model's chat template failed: .*\.$"):
        rendered(source)


@pytest.mark.parametrize("source", ["{% if %}", "{{ x", "{% unknown %}", "{{ 'a' | nofilter }}"])
def test_a_template_that_is_not_valid(source):
    with pytest.raises(TemplateError, match=r"is not valid: .*\.$"):
        ChatTemplate(source, {})


def test_a_model_without_a_template_gets_a_plain_one():
    plain = ChatTemplate(None, {})
    assert plain.plain
    assert plain.render(MESSAGES) == "System: Be brief.\n\nUser: Hi <b> & 'you'\n\nAssistant:"


def test_a_failure_shows_no_foreign_exception():
    with pytest.raises(TemplateError) as caught:
        rendered("{{ raise_exception('no') }}")
    assert not isinstance(caught.value, jinja2.TemplateError) and caught.value.__suppress_context__
