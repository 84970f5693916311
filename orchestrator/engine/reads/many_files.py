"""read_files: several files in one answer, which share its budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from orchestrator.api import context as c
from orchestrator.api import parameters as p
from orchestrator.core.errors import ApproverError, CallerError, escaped
from orchestrator.core.text.answer_space import AnswerSpace, estimate_tokens, size
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.paths import quoted
from orchestrator.engine.reads.file_facts import FactReader
from orchestrator.engine.reads.summaries import Summarizer
from orchestrator.engine.services import Services

LEAST_TOKENS, LEAST_BYTES, LEAST_LINES = 100, 1000, 12
"""Of one file's text with its frame; where there is less for each, the last ones are left out."""

FRAME_TOKENS = 50
"""Of one file's head, markers and way to go on, beside its path in them."""

NoteRefusal: TypeAlias = Callable[[Caller, Call, CallerError | ApproverError], Awaitable[None]]


class ManyReader:
    """Reads as read_file does, and notes each file by itself, with its refusal if there is one."""

    def __init__(self, services: Services, reads: Summarizer, facts: FactReader, note_refusal: NoteRefusal) -> None:
        self._s, self._reads, self._facts, self._note_refusal = services, reads, facts, note_refusal

    async def read_files(self, caller: Caller, call: Call, params: c.ReadFiles) -> c.FileTexts:
        """The smallest first: what one leaves of its share goes to the larger ones."""
        tokens, paths = self._s.permissions.answer_tokens(caller, params.max_tokens), tuple(dict.fromkeys(params.paths))
        room = call.room.framed(*(quoted(path) for path in paths))
        many = max(1, min(tokens // LEAST_TOKENS, room.bytes // LEAST_BYTES, room.lines // LEAST_LINES))
        chosen, left_out = paths[:many], paths[many:]
        answers: dict[str, c.FileAnswer] = {}
        for done, path in enumerate(sorted(chosen, key=lambda path: self._facts.size_at(path) or 0)):
            left, frame = len(chosen) - done, FRAME_TOKENS + 2 * estimate_tokens(path)
            share = AnswerSpace(room.bytes // left, room.lines // left, room.typed)
            wanted = p.ReadFile(
                path=path,
                max_tokens=max(1, tokens // left - frame),
                line_numbers=params.line_numbers,
                delta=params.delta,
            )
            answer = answers[path] = await self._read(caller, call, wanted, share)
            text = answer.text.text if answer.text is not None else (answer.message or "") + (answer.hint or "")
            tokens = max(0, tokens - estimate_tokens(text) - frame)
            room = room.less(room.cost(size(text) + LEAST_BYTES // 2, answer), text.count("\n") + LEAST_LINES // 2)
        rest = ", ".join(map(quoted, left_out))
        return c.FileTexts(
            files=tuple(answers[path] for path in chosen),
            left_out=tuple(map(escaped, left_out)),
            next=f"read_files(paths=[{rest}])" if left_out else None,
        )

    async def _read(self, caller: Caller, call: Call, wanted: p.ReadFile, share: AnswerSpace) -> c.FileAnswer:
        one = msgspec.structs.replace(call, params=wanted, room=share)
        try:
            text = await self._reads.read_file(caller, one, wanted)
        except (CallerError, ApproverError) as error:
            await self._note_refusal(caller, one, error)
            approval = error.details.get("approval")
            return c.FileAnswer(
                path=escaped(wanted.path),
                code=error.code,
                message=error.message,
                hint=error.hint or None,
                approval=approval if isinstance(approval, str) else None,
            )
        if text.image is not None:
            told = f"it is an image: read_file(path={quoted(text.path)}) shows it"
            text = msgspec.structs.replace(text, image=None, warnings=(*text.warnings, told))
        return c.FileAnswer(path=text.path, text=text)
