def sub(p,*pairs):
    s=open(p).read()
    for a,b in pairs:
        assert a in s,(p,a)
        s=s.replace(a,b,1)
    open(p,'w').write(s)
sub('orchestrator/core/settling.py',('frozen=True, array_like=True)','frozen=True, gc=False)'))
sub('orchestrator/core/decisions/undoing.py',('''        if isinstance(outcome, Clash):
            self._clash(newest, before, run, outcome)
            return
        part =''','''        if not isinstance(outcome, Apply):
            self._clash(newest, before, run, outcome if isinstance(outcome, Clash) else None)
            return
        part ='''))
sub('orchestrator/engine/granting.py',('''                outcome = rebase(old, new, msgspec.structs.replace(here, base=base), anchors=())
''','''                fitted = rebase(old, new, msgspec.structs.replace(here, base=base), anchors=())
                outcome = fitted if not isinstance(fitted, Need) else None
'''),("decision import Apply, Clash, Facts, Held, Part","decision import Apply, Clash, Facts, Held, Need, Part"))
sub('orchestrator/api/results.py',('''class ChangeAnswer(Result''','''class MergeText(Result, frozen=True, kw_only=True):
    """One place where a change met what others had done. Lines [first, last] from 1; last < first: none there."""

    path: str
    lines: tuple[int, int]  # in the file as it is now
    rule: str
    why: str
    base: tuple[int, int]
    current: tuple[int, int]
    proposed: tuple[int, int]


class ChangeAnswer(Result'''),
('''    notices: tuple[Any, ...] = ()
    warnings''','''    merge: tuple[MergeText, ...] = ()  # of a merge: each place, the rule that brought it together, and why
    merge_truncated: bool = False
    notices: tuple[Any, ...] = ()
    warnings'''),('''    removed: int
    files: tuple[FileDiff, ...] = ()''','''    removed: int
    merge: tuple[MergeText, ...] = ()  # where the newer version came of a merge: how each place came together
    files: tuple[FileDiff, ...] = ()'''))
open('orchestrator/engine/merges.py','w').write('''"""What a merge did, as callers are told."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.api import results as r
from orchestrator.core.settling import SettledRegion

MOST_TOLD = 40
"""Places of one merge that an answer tells."""


def told(settled: Sequence[SettledRegion]) -> tuple[r.MergeText, ...]:
    """The places, those that git would have left to a person first."""
    chosen = sorted(settled, key=lambda region: region.rule == "apart")[:MOST_TOLD]
    return tuple(
        r.MergeText(
            path=region.path,
            lines=_lines(region.start, region.length),
            rule=region.rule,
            why=region.why,
            base=_lines(region.base_start, region.base_len),
            current=_lines(region.current_start, region.current_len),
            proposed=_lines(region.proposed_start, region.proposed_len),
        )
        for region in chosen
    )


def rules(settled: Sequence[SettledRegion]) -> str:
    """The rules that settled what lay closer together than git allows; "" if none had to."""
    return ", ".join(dict.fromkeys(region.rule for region in settled if region.rule != "apart"))


def _lines(start: int, length: int) -> tuple[int, int]:
    return start + 1, start + length
''')
sub('orchestrator/engine/answers.py',('''        diff, truncated = (None, False)
        if all(shows(changed.path) for changed in event.paths):
            diff, truncated = await self._diffs.of_change(event.paths)
''','''        diff, truncated = (None, False)
        if shown := all(shows(changed.path) for changed in event.paths):
            diff, truncated = await self._diffs.of_change(event.paths)
'''),
('''            message=_applied_message(event.operation, event.paths, recorded.seq, event.rung),
''','''            message=_applied_message(event.operation, event.paths, recorded.seq, event.rung, event.settled),
'''),
('''            approval=show(event.approval) if event.approval else None,
            warnings=''','''            approval=show(event.approval) if event.approval else None,
            merge=told(event.settled) if shown else (),
            merge_truncated=len(event.settled) > MOST_TOLD,
            warnings='''),
('''            base=show(plan.base) if plan.base else None,
            warnings=plan.warnings,''','''            base=show(plan.base) if plan.base else None,
            merge=told(plan.settled) if shown else (),
            merge_truncated=len(plan.settled) > MOST_TOLD,
            warnings=plan.warnings,'''),
('''def _applied_message(operation: str, paths: Sequence[PathChange], version: Seq, rung: str) -> str:
''','''def _applied_message(
    operation: str, paths: Sequence[PathChange], version: Seq, rung: str, settled: Sequence[SettledRegion]
) -> str:
'''),
('''.get(rung, "")
''','''.get(rung, "")
    if by := rules(settled):
        how += f" (settled by rule: {by}; see merge)"
'''),
('''                else f"Read the current''','''                else f"{_settleable(found.settleable)}Read the current'''),
('''def _path_of(''','''def _settleable(rules: Sequence[SettleRule]) -> str:
    return f"The rule {', '.join(rules)} would settle it, but policy leaves that to a person. " if rules else ""


def _path_of('''),
('''from orchestrator.engine.services''','''from orchestrator.engine.merges import MOST_TOLD, rules, told
from orchestrator.engine.services'''),
('''from orchestrator.core.text.merge ''','''from orchestrator.core.settling import SettledRegion, SettleRule
from orchestrator.core.text.merge '''))
sub('orchestrator/engine/entries.py',('"temp_found", "digest"))','"temp_found", "digest", "why"))'),('"""A hash lets a content be guessed at leisure."""','"""A hash lets a content be guessed at leisure; why a merge was safe names symbols of it."""'))
sub('orchestrator/engine/history.py',('''            removed=removed,
        )
''','''            removed=removed,
            merge=await self._merged(path, right.version),
        )

    async def _merged(self, path: WorkspacePath, version: Seq) -> tuple[r.MergeText, ...]:
        """How a version came together, if a merge brought it."""
        recorded = await self._s.journal.event(version) if version else None
        if recorded is None or not isinstance(recorded.event, ChangeApplied):
            return ()
        return told([region for region in recorded.event.settled if region.path == path])
'''))
sub('orchestrator/clients/render.py',('''    yield from content(answer.shown or "")
    yield from (f"warn''','''    yield from content(answer.shown or "")
    yield from merged(answer.merge)
    yield from (f"warn'''),
('''            yield from diff_lines(result.diff)
''','''            yield from diff_lines(result.diff)
            yield from merged(result.merge)
'''),
('''def _about(event: dict[str, object]) -> str:
    path =''','''def _about(event: dict[str, object]) -> str:
    settled = event.get("settled")
    if isinstance(settled, list) and settled:
        return f"{_about({**event, 'settled': None})} ({merge_rules(settled)})"
    path ='''))
open('orchestrator/clients/merges.py','w').write('''"""What a merge did, for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orchestrator.api import results as r
from orchestrator.core.errors import escaped


def merged(places: Iterable[r.MergeText]) -> Iterator[str]:
    """A line for each place where a change met what others had done."""
    for place in places:
        first, last = place.lines
        lines = f"{first}-{last}" if last > first else f"{first}"
        yield f"merged: {escaped(place.path)}:{lines} {place.rule}: {escaped(place.why)}"


def merge_rules(settled: Iterable[object]) -> str:
    """The rules of an event's merge, in short."""
    return "merged: " + ", ".join(
        dict.fromkeys(str(place.get("rule")) for place in settled if isinstance(place, dict))
    )
''')
sub('tests/golden/samples.py',('''"""Samples of events that got''','''
SETTLED = SettledRegion(PATH, "imports", "only imports stand here", 1, 0, 1, 2, 1, 3, 1, 5)
SETTLING: tuple[Event, ...] = (
    f.ChangeIntended(operation="edit_file", paths=(INTENDED,), rung="merged", settled=(SETTLED,)),
    f.ChangeApplied(change=Seq(16), paths=(CHANGED,), rung="merged", settled=(SETTLED,)),
    c.ConflictFound(
        path=PATH,
        base=A,
        base_version=Seq(3),
        current=C,
        current_version=Seq(22),
        proposed=B,
        settleable=("imports", "moved"),
    ),
)
"""As GROWN; merges that say what they settled."""
"""Samples of events that got'''))
s=open('tests/golden/samples.py').read()
i=s.index('\nSETTLED ='); j=s.index('"""Samples of events that got'); k=s.index('"""',j+3)+4
s=s[:i]+s[j:k]+s[i:j]+s[k:]
s=s.replace("from orchestrator.core.ids import","from orchestrator.core.settling import SettledRegion\nfrom orchestrator.core.ids import",1)
open('tests/golden/samples.py','w').write(s)
sub('tests/golden/test_events.py',('''.grown.json": event for event in GROWN},
''','''.grown.json": event for event in GROWN},
    **{f"{tag_of(event)}.v1.settled.json": event for event in SETTLING},
'''),("import GROWN, SAMPLES","import GROWN, SAMPLES, SETTLING"))
