"""Calls, thoughts and signs of templates in a model's text are left out, however the text is cut."""

import pytest

from chat.answering.machinery import MachineryStream

CALL = '{"name": "ask_tables", "arguments": {"question": "How many?"}}'


def filtered(text, cut, known=""):
    stream = MachineryStream(lambda piece: piece in known)
    shown = "".join(stream.feed(text[at : at + cut]) for at in range(0, len(text), cut)) + stream.close()
    return shown, stream.withheld


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 1000])
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
        ("<think>Grams?\nOr kilos?</think>It is 3.", "It is 3."),
        ("It is 3. <think>Is it", "It is 3. "),
        ("It is 3.<|im_end|>\n<|im_start|>user\nAnd more?", "It is 3."),
        ("It is 3.<end_of_turn>\nAnd", "It is 3."),
        ("[INST]It is[/INST] 3.</s>", "It is 3."),
        ("<|channel|>It is 3.", "It is 3."),
        ("SOURCE [1] Manual, Weight\n> It is 3.\n>\n> > It hums.", "It is 3.\n\nIt hums."),
    ],
)
def test_machinery_is_left_out(text, shown, cut):
    assert filtered(text, cut) == (shown, True)


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 1000])
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
    ],
)
def test_ordinary_text_passes(text, cut):
    assert filtered(text, cut) == (text, False)


@pytest.mark.parametrize("text", [CALL, f"So:\n{CALL}\n", "The tag <think> opens a thought."])
def test_what_stands_in_a_source_may_be_shown(text):
    assert filtered(text, 3, known=f"{CALL} <think>") == (text, False)
