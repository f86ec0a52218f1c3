"""Messages as token ids, by the checkpoint's own chat template and tokenizer.

In come messages, out come ids in which each picture is one placeholder. The
template runs in a sandbox, with the settings that checkpoints are written for.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from patchmill_client.vllm import Family
from tokenizers import Tokenizer

from frontend.faults import Fault


@dataclass(frozen=True, slots=True)
class Marks:
    """The words around and for a picture. What the template writes itself is not named."""

    placeholder: str
    start: tuple[str, ...] = ()
    end: tuple[str, ...] = ()


MARKS = {
    Family.KIMI: Marks("<|media_pad|>"),
    Family.NEMOTRON: Marks("<image>", start=("<img>",), end=("</img>",)),
}


class Prompter:
    """A checkpoint folder's tokenizer and chat template."""

    def __init__(self, folder: Path, family: Family) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _refuse
        environment.filters["tojson"] = _to_json
        self._template = environment.from_string(_template_of(folder, config))
        self._words = {name: _word(config.get(name)) for name in ("bos_token", "eos_token")}
        marks = MARKS[family]
        self.placeholder_id = self._id(marks.placeholder)
        self.start_ids = [self._id(word) for word in marks.start]
        self.end_ids = [self._id(word) for word in marks.end]

    def token_ids(self, messages: list[dict[str, Any]]) -> list[int]:
        """The prompt up to where the assistant speaks; raises Fault where a template refuses."""
        try:
            text = self._template.render(
                messages=messages, add_generation_prompt=True, **self._words
            )
        except TemplateError as error:
            raise Fault(400, f"the chat template refuses these messages: {error}") from error
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _id(self, word: str) -> int:
        found: int | None = self._tokenizer.token_to_id(word)
        if found is None:
            raise ValueError(f"the tokenizer has no token {word}; is the family right?")
        return found


def _template_of(folder: Path, config: Mapping[str, Any]) -> str:
    """Of a file of its own, or of the configuration, where newer and older checkpoints keep it."""
    path = folder / "chat_template.jinja"
    if path.exists():
        return path.read_text("utf-8")
    found = config.get("chat_template")
    if isinstance(found, list):
        found = next((each["template"] for each in found if each["name"] == "default"), None)
    if not isinstance(found, str):
        raise ValueError(f"no chat template in {folder}")
    return found


def _word(found: Any) -> str:
    """A special token stands as text, or as a map with its text as content."""
    return str(found["content"] if isinstance(found, dict) else found or "")


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _to_json(value: Any, indent: int | None = None) -> str:
    """As checkpoints expect it: not escaped for HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)
