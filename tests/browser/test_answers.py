"""The whole product on a software adapter: the embedded model answers in the page, `greedy` and `loop` alike."""

import pytest

from pyweb.engine.modes import DEPTH

LOAD = """
const { Assistant } = await import(base + 'js_bridge/client.js');
window.progress = [];
window.assistant = await Assistant.load({ ...args, onProgress: (p) => window.progress.push(p) });
return [...new Set(window.progress.map((p) => p.stage))];
"""

BOTH_MODES = """
const pieces = [];
const { question, ...options } = args;
const greedy = await assistant.ask(question, { ...options, mode: 'greedy' });
const loop = await assistant.ask(question, { ...options, mode: 'loop', window: 4, onText: (t) => pieces.push(t) });
return { greedy, loop, pieces };
"""

PROMPTS = [
    {"question": "What is the capital of France?", "text": "", "maxTokens": 16},
    {
        "question": "What colour is the boat?",
        "text": "The harbour of Linsund has one boat. It is painted bright yellow and carries post twice a week.",
        "maxTokens": 13,
    },
    {
        "question": "Write one line of Python that prints the numbers from 1 to 3.",
        "text": "",
        "maxTokens": 16,
    },
]


@pytest.fixture(scope="module")
def loaded(call):
    stages = call(LOAD, model="smollm2-135m-instruct", context=512)
    assert stages == ["runtime", "model", "kernels"]
    return call


@pytest.mark.parametrize("prompt", PROMPTS, ids=["plain", "text", "code"])
def test_greedy_and_loop_give_the_same_ids(loaded, prompt):
    result = loaded(BOTH_MODES, **prompt)
    assert "error" not in result, result
    greedy, loop = result["greedy"], result["loop"]
    assert len(greedy["prompt_ids"]) < 150
    assert greedy["reply_ids"] == loop["reply_ids"]
    assert "".join(result["pieces"]) == loop["answer"] == greedy["answer"]
    assert greedy["maps"] == greedy["steps"]  # once a token, the stop token included
    windows = -(-loop["steps"] // 4)
    assert windows <= loop["maps"] < windows + DEPTH  # once a window; some may be in flight at the end
    assert loop["widths"] == {"1": loop["steps"]}
    assert loop["finish_reason"] == greedy["finish_reason"]


def test_answers_from_the_page_itself(loaded, browser):
    browser.execute_script(
        "document.title = 'Skerry Point';"
        "document.body.innerHTML = '<main><h1>Skerry Point</h1><p>The lighthouse of Skerry Point was built"
        " in 1884 from grey granite. It stands on a rock that the tide cuts off twice a day.</p></main>'"
    )
    result = loaded("return assistant.ask('When was the lighthouse built?', { maxTokens: 16, mode: 'loop' })")
    assert "error" not in result, result
    assert "1884" in result["answer"]
    assert {"load", "prefill", "first_token", "decode"} <= set(result["times"])


REPETITIVE = (
    "Repeat after me. The red boat leaves the harbour at six. The red boat leaves the harbour at six. "
    "The red boat leaves the harbour at six. The red boat leaves the harbour at six."
)


def test_drafts_save_steps_and_change_no_id(loaded):
    body = """
    const options = { text: args.text, maxTokens: 24 };
    const loop = await assistant.ask('Repeat the text.', { ...options, mode: 'loop' });
    const steps = [];
    const drafted = { ...options, mode: 'fixed:8', onStep: (step) => steps.push(step) };
    const fixed = await assistant.ask('Repeat the text.', drafted);
    return { loop, fixed, steps };
    """
    result = loaded(body, text=REPETITIVE)
    assert "error" not in result, result
    loop, fixed, steps = result["loop"], result["fixed"], result["steps"]
    assert fixed["reply_ids"] == loop["reply_ids"]
    assert fixed["steps"] < len(fixed["reply_ids"])
    assert fixed["widths"] == {"8": fixed["steps"]}
    assert [step["record"] for step in steps] == [None, *fixed["records"]]
    assert steps[0]["tree"][0]["parent"] == 0 and len(steps[0]["tree"]) > 1


def test_same_seed_same_reply_whatever_the_mode(loaded):
    body = """
    const sampling = { temperature: 0.9, top_p: 0.9, repetition_penalty: 1.1, seed: 5 };
    const options = { text: '', maxTokens: 12, sampling };
    const ids = [];
    for (const mode of ['loop', 'fixed:4']) {
      ids.push((await assistant.ask('Name a sea.', { ...options, mode })).reply_ids);
    }
    const other = await assistant.ask('Name a sea.', { ...options, mode: 'loop', sampling: { ...sampling, seed: 6 } });
    return { ids, other: other.reply_ids };
    """
    result = loaded(body)
    assert "error" not in result, result
    assert result["ids"][0] == result["ids"][1] != result["other"]


def test_stop_ends_a_reply_between_windows(loaded):
    body = """
    const controller = new AbortController();
    let pieces = 0;
    return assistant.ask('Write a long story about a sailor and a storm.', {
      text: '', maxTokens: 200, mode: 'loop', signal: controller.signal,
      onText: () => ++pieces === 2 && controller.abort(),
    });
    """
    result = loaded(body)
    assert result["finish_reason"] == "cancelled"
    assert 0 < len(result["reply_ids"]) < 40


def test_prompt_longer_than_the_context_is_refused_and_the_next_question_answered(loaded):
    result = loaded("return assistant.ask('What?', { text: args.text })", text="word " * 600)
    assert result["error"] == "PromptTooLongError"
    assert "512" in result["message"] and result["remedy"]
    again = loaded("return assistant.ask('Say hello.', { text: '', maxTokens: 3, mode: 'loop' })")
    assert len(again["reply_ids"]) == 3


def test_page_without_text_is_refused(loaded):
    result = loaded("return assistant.ask('What?', { page: { html: '<p></p>', url: '', title: '' } })")
    assert result["error"] == "EmptyPageError"


def test_a_follow_up_uses_what_was_computed(loaded):
    first, second, third = loaded(
        """
        const chat = assistant.chat({ text: args.text });
        const options = { maxTokens: 8, mode: 'loop' };
        const first = await chat.ask('What colour is the boat?', options);
        const second = await chat.ask('Which one?', { ...options, onText: () => {} });
        const third = await chat.ask('Which one, again?', { ...options, stop: ['e'] });
        await chat.close();
        return [first, second, third, await chat.ask('And now?').catch(({ name }) => name)];
        """,
        text="The harbour of Linsund has one boat. It is painted bright yellow.",
    )[:3]
    shared = first["prompt_ids"] + first["reply_ids"]
    assert second["prompt_ids"][: len(shared)] == shared and second["reused"] >= len(shared) - 1
    assert first["material"].startswith("The harbour") and third["dropped"] == 0
    assert third["finish_reason"] == "stop" and "e" not in third["answer"]


def test_questions_wait_for_their_turn_and_can_be_stopped_while_they_wait(loaded):
    names = loaded(
        """
        const ask = (options) => assistant.ask('Name a sea.', { page: null, maxTokens: 4, mode: 'loop', ...options });
        const stopping = new AbortController();
        const order = [];
        const asked = [ask({}), ask({ signal: stopping.signal }), ask({})];
        asked.forEach((reply, number) => reply.then(() => order.push(number), () => order.push(-number)));
        stopping.abort();
        const ended = await Promise.allSettled(asked);
        return [...ended.map(({ reason }) => reason?.name ?? 'answered'), ...order];
        """
    )
    assert names == ["answered", "StoppedError", "answered", 0, -1, 2]


def test_a_picked_file_is_described_and_a_wrong_one_refused(loaded):
    described, error = loaded(
        """
        const index = await (await fetch(base + 'models/index.json')).json();
        const whole = await (await fetch(new URL(index[0].url, base + 'models/'))).blob();
        const described = await assistant.inspect(new File([whole], 'mine.gguf'), 512);
        const refused = assistant.inspect(new File(['no model'], 'x.gguf'));
        const error = await refused.catch(({ name, message }) => ({ name, message }));
        return [described, error];
        """
    )
    assert described["runs"] and described["architecture"] == "llama" and described["memory"]["context"] == 512
    assert error["name"] == "ModelFileError" and "GGUF" in error["message"]


MISUSES = """
const text = 'A lamp.';
const wrong = [
  () => assistant.ask(), () => assistant.ask(5), () => assistant.ask('Why?', { max_tokens: 3 }),
  () => assistant.ask('Why?', { text, maxTokens: '3' }), () => assistant.ask('Why?', { text, stop: [''] }),
  () => assistant.ask('Why?', { text, sampling: { topK: 3 } }),
  () => assistant.request('ask', { question: 'Why?', foo: 1 }),
  () => assistant.chat({ text }).ask('Why?', { foo: 1 }), () => assistant.request('fly', {}),
];
const errors = [];
const seen = ({ name, remedy }) => name + (remedy ? '' : ' without remedy');
for (const ask of wrong) errors.push(await ask().then(() => null, seen));
return errors;
"""


def test_misuse_is_said_with_a_remedy(loaded):
    assert loaded(MISUSES) == ["UsageError"] * 9


def test_a_stop_string_needs_no_list(loaded):
    options = {"text": "", "maxTokens": 12, "mode": "loop"}
    whole = loaded("return assistant.ask('Name a sea.', args)", **options)["answer"]
    stop = whole[4:7]
    cut = loaded("return assistant.ask('Name a sea.', args)", **options, stop=stop)
    assert (cut["answer"], cut["finish_reason"]) == (whole[: whole.index(stop)], "stop")


def test_nothing_hangs_after_closing(loaded):
    names = """
    assistant.close();
    const asked = [assistant.ask('Why?', { page: null }), assistant.forget()];
    return Promise.all(asked.map((reply) => reply.catch(({ name }) => name)));
    """
    assert loaded(names) == ["StoppedError"] * 2


def test_second_visit_reads_the_model_from_the_device(loaded, browser, site):
    browser.get(site + "run.html")
    body = """
    const { Assistant } = await import(base + 'js_bridge/client.js');
    const known = await (await fetch(base + 'models/index.json')).json();
    const model = { ...known[0], url: new URL(known[0].url, base + 'models/').href };
    const assistant = new Assistant(base + 'js_bridge/worker.js');
    await assistant.request('boot', { runtime: base + 'runtime/' });
    const loaded = await assistant.request('load', { model, context: 256 });
    assistant.close();
    return loaded;
    """
    result = loaded(body)
    assert "error" not in result, result
    assert result["not_kept"] == ""
    assert result["fetched"] == 0
