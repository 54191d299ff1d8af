"""Calls, thoughts and signs of templates in a model's text are left out, however the text is divided."""

import pytest

from core.language_model.machinery import THOUGHTS, ReplyCleaner, remove_thoughts

CALL = '{"name": "ask_tables", "arguments": {"question": "How many?"}}'
CUTS = pytest.mark.parametrize("cut", [1, 2, 3, 7, 1000])


def filtered(text, cut, known="", *, is_cut=False, **options):
    """Return the shown text as a reader sees it at the end, and the stream."""
    stream = ReplyCleaner(lambda piece: piece in known, **options)
    shown = ""

    def add(text):
        nonlocal shown
        if stream.takes_back:
            shown, stream.takes_back = "", False
        shown += text

    for at in range(0, len(text), cut):
        add(stream.feed(text[at : at + cut]))
    add(stream.close(is_cut=is_cut))
    return shown, stream


@CUTS
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (CALL, ""),
        (f"[{CALL}, {CALL}]\nIt is 3.", "\nIt is 3."),
        (f"Sure.\n```json\n{CALL}\n```\nIt is 3.", "Sure.\nIt is 3."),
        ('~~~\n{"function": "ask", "parameters": {}}\n~~~', ""),
        ('{"tool_calls": [{"type": "function", "function": {"name": "a", "arguments": "{}"}}]}', ""),
        (f"Wait.\n{CALL[:30]}", "Wait.\n"),
        (f"```json\n{CALL[:20]}", ""),
        (f"A <tool_call>\n{CALL}\n</tool_call>", "A "),
        ("<function=ask_tables>{}</function>It is 3.", "It is 3."),
        ("It is 3. <think>Is it", "It is 3. "),
        ("It is 3.<|im_end|>\n<|im_start|>user\nAnd more?", "It is 3."),
        ("It is 3.<end_of_turn>\nAnd", "It is 3."),
        ("[INST]It is[/INST] 3.</s>", "It is 3."),
        ("<|channel|>It is 3.", "It is 3."),
        ("It is 3.<eos>", "It is 3."),
        ("It is 3.<|eom_id|>assistant\n\nAnd", "It is 3."),
        ("It is 3.<|end_of_turn|>User: And?", "It is 3."),
        ("It is 3.<|start_header_id|>user<|end_header_id|>\n\nAnd?", "It is 3."),
        ("It is 3.<turn|><|turn>user\nAnd?", "It is 3."),
        ("[cite_start]It is 3 [cite: 1].", "It is 3 [cite: 1]."),
        # The model begins its turn itself.
        ("<|im_start|>assistant\nIt is 3.<|im_end|>", "\nIt is 3."),
        ("<start_of_turn>model\nIt is 3.<end_of_turn>", "\nIt is 3."),
        ("<|start_header_id|>assistant<|end_header_id|>\n\nIt is 3.<|eot_id|>", "\n\nIt is 3."),
        ("<|begin|>assistant<|content|>It is 3.<|end|>", "It is 3."),
        # The server has removed the thought in front of the answer's tag.
        ("<answer>It is 3.</answer>", "It is 3."),
        ("<final_answer>It is 3.</final_answer>", "It is 3."),
        # Calls of other families.
        ("<|tool_call_start|>[ask(q='a')]<|tool_call_end|>It is 3.", "It is 3."),
        ("<|tool_calls_section_begin|><|tool_call_begin|>functions.ask:0<|tool_call_argument_begin|>{}", ""),
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>ask\n{}<｜tool▁call▁end｜>It is 3.",
            "It is 3.",
        ),
        ("<function_calls>\n<invoke name='ask'>\n</invoke>\n</function_calls>It is 3.", "It is 3."),
        ("<minimax:tool_call>\n<invoke name='ask'>\n</invoke>\n</minimax:tool_call>It is 3.", "It is 3."),
        ("<｜DSML｜function_calls>\n<｜DSML｜invoke name='ask'>\n</｜DSML｜function_calls>It is 3.", "It is 3."),
        ("SOURCE [1] Manual, Weight\n> It is 3.\n>\n> > It hums.", "> It is 3.\n>\n> > It hums."),
    ],
)
def test_machinery_is_left_out(text, shown, cut):
    found, stream = filtered(text, cut)
    assert (found, stream.withheld) == (shown, True)


# The thought of each family as its models write it; a new row of THOUGHTS needs one here.
WRITTEN = {
    "DeepSeek, Qwen, GLM, Hunyuan, Phi, Seed": ("<think>", "</think>"),
    "Magistral": ("[THINK]", "[/THINK]"),
    "Kimi": ("◁think▷", "◁/think▷"),
    "Command A": ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    "OpenThinker, Sky-T1": ("<|begin_of_thought|>", "<|end_of_thought|>"),
    "MiniCPM": ("<|thought_start|>\n", "<|thought_end|>"),
    "Solar": ("<|think|>", "<|end|><|begin|>assistant<|content|>"),
    "Apertus": ("<|inner_prefix|>", "<|inner_suffix|>"),
    "MedGemma": ("<unused94>thought\n", "<unused95>"),
    "Gemma 4": ("<|channel>thought\n", "<channel|>"),
    "gpt-oss": (
        "<|start|>assistant<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
    "gpt-oss without its special tokens": ("analysis", "assistantfinal"),
    "Granite": ("Here is my thought process: ", "Here is my response:"),
    "Open WebUI": ('<details type="reasoning" done="true">\n<summary>Thought</summary>\n', "\n</details>\n"),
}
SECRET = "SECRET: grams?\n\n```\nOr kilos <b>?\n```\nThe source [1] says 3."


@CUTS
@pytest.mark.parametrize("family", [name for name, *_ in THOUGHTS])
def test_no_thought_is_shown(family, cut):
    opening, closing = WRITTEN[family]
    for answer in ("It is 3 [1].", "It is\n\n- 3 [1].\n"):
        for end in ("", "<|return|>"):
            shown, stream = filtered(f"{opening}{SECRET}{closing}{answer}{end}", cut)
            assert shown.strip() == answer.strip()
            assert stream.withheld
    # A thought that never ends is no answer either.
    assert filtered(opening + SECRET, cut)[0] == ""
    reply = '{"name": "a", "arguments": {}}'
    assert remove_thoughts(f"{opening}{SECRET}{closing}{reply}") == reply


@CUTS
@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<think >", "</think >"),
        ('<thinking signature="a b">', "</thinking>"),
        ("<longcat_think>", "</longcat_think>"),
        ("<mm:think>", "</mm:think>"),
        ("<thought_process>", "</thought_process>"),
        ("<thinking_process>", "</thinking_process>"),
        ("<reasoning_content>", "</reasoning_content>"),
        ("<internal_reasoning>", "</internal_reasoning>"),
    ],
)
def test_a_name_of_a_thought_has_prefixes_and_attributes(opening, closing, cut):
    shown, stream = filtered(f"{opening}{SECRET}{closing}\nIt is 3 [1].", cut)
    assert (shown.strip(), stream.withheld) == ("It is 3 [1].", True)


@CUTS
@pytest.mark.parametrize("family", [name for name, *_, closes_alone in THOUGHTS if closes_alone])
@pytest.mark.parametrize("begin", ["Okay, the user asks. ", "12 pumps? ", "```\n1\n"])
@pytest.mark.parametrize("opens_with_thought", [False, True])
def test_a_thought_that_the_template_opened_is_not_shown(family, begin, opens_with_thought, cut):
    _, closing = WRITTEN[family]
    shown, stream = filtered(f"{begin}{SECRET}\n{closing}\n\nIt is 3 [1].", cut, opens_with_thought=opens_with_thought)
    assert shown.strip() == "It is 3 [1]."
    assert stream.closes_alone


@CUTS
def test_a_usual_thought_is_held_back_until_its_end(cut):
    stream = ReplyCleaner()
    text = f"Okay, the user asks. {SECRET} And so on, and on. " * 20
    assert "".join(stream.feed(text[at : at + cut]) for at in range(0, len(text), cut)) == ""
    assert stream.close(is_cut=True) == ""
    assert filtered("Okay, it is 3 [1].", cut)[0] == "Okay, it is 3 [1]."


@CUTS
@pytest.mark.parametrize(
    "text",
    [
        "If a < b and [x] [1] then <b>. See [INSTALL] and `<think` too.\n- x\n",
        'Set it so:\n\n```json\n{"name": "web", "port": 3}\n```\nDone.',
        '{"port": 3} is an object, and { is a brace.',
        '```python\ncalls = [\n{"name": "a", "arguments": {}}\n]\n```\n',
        "[1] It is 3.\n[2] It is 4.",
        "``` is a fence, `{` a brace.",
        "SOURCES are many; 3 > 2, and\nSOUR is no source.",
        "> A quotation.\n> > Of another.",
        "The tags `<think>` and `</think>` are around a thought.",
        "It cost <s>4</s> 3 euros, <s>no</s> yes.",
        "The reply is <answer>3</answer>.",
        "Send <cancel_reason>late</cancel_reason> or <thinkpad>T14</thinkpad>.",
        "An analysis is made.\nanalysis is made, and Here is my response: 3.",
        "<details>\n<summary>More</summary>\nText\n</details>",
    ],
)
def test_ordinary_text_passes(text, cut):
    shown, stream = filtered(text, cut)
    assert (shown, stream.withheld) == (text, False)


@pytest.mark.parametrize("text", [f"So:\n{CALL}\n", "The tag <think> opens a thought, </think> closes it."])
def test_what_stands_in_a_source_may_be_shown(text):
    shown, stream = filtered(text, 3, known=f"{CALL} <think> </think>")
    assert (shown, stream.withheld) == (text, False)
