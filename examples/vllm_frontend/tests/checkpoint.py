"""Tokenizer folders as checkpoints have them, made small: an alphabet of bytes and the marks."""

import json
from pathlib import Path

from patchmill_client.vllm import Family
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

MARKS = {
    Family.KIMI: [
        *("[BOS]", "[EOS]", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>", "<|im_end|>"),
        *("<|media_begin|>", "<|media_content|>", "<|media_end|>", "<|media_pad|>"),
    ],
    Family.NEMOTRON: ["<s>", "</s>", "<image>", "<img>", "</img>"],
}
KIMI_TEMPLATE = """\
{%- for message in messages -%}
    {%- set side = 'assistant' if message.role == 'assistant' else 'user' -%}
    <|im_{{ side }}|>{{ message.name or message.role }}<|im_middle|>
    {%- if message.content is string -%}
        {{ message.content }}
    {%- else -%}
        {%- for part in message.content -%}
            {%- if part.type == 'image' -%}
                <|media_begin|>image<|media_content|><|media_pad|><|media_end|>
            {%- else -%}
                {{ part.text }}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    <|im_end|>
{%- endfor -%}
{%- if add_generation_prompt -%}<|im_assistant|>assistant<|im_middle|>{%- endif -%}
"""
NEMOTRON_TEMPLATE = """\
{{- bos_token -}}
{%- for message in messages -%}
    {%- if message.role == 'system' -%}{{ raise_exception('no system here') }}{%- endif -%}
    {{ message.role }}:
    {%- for part in message.content -%}
        {{ '<image>' if part.type == 'image' else part.text }}
    {%- endfor -%}
{%- endfor -%}
"""


def write(folder: Path, family: Family) -> Path:
    """The folder, with tokenizer.json, tokenizer_config.json and a chat template."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({char: place for place, char in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in MARKS[family]])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    bos, eos, *_ = MARKS[family]
    config: dict[str, object] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": bos,
        "eos_token": {"content": eos, "__type": "AddedToken"},  # in either form, as checkpoints do
    }
    if family is Family.KIMI:
        (folder / "chat_template.jinja").write_text(KIMI_TEMPLATE)
    else:  # where older checkpoints keep it
        config["chat_template"] = [{"name": "default", "template": NEMOTRON_TEMPLATE}]
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder
