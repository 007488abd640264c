"""Makes the drafter a request asks for, after checking that it fits the target."""

from __future__ import annotations

from pathlib import Path

from slipstream.chat.ports import MeasurementStore
from slipstream.engine.llama import ContextSettings, Model
from slipstream.engine.model_parts import read_parts
from slipstream.engine.requests import DraftRequest, Pace
from slipstream.engine.session import GenerationSession
from slipstream.engine.speculation.calibration import measure_costs, with_guesses
from slipstream.engine.speculation.compatibility import judge_draft
from slipstream.engine.speculation.draft_model import DraftModelDrafter
from slipstream.engine.speculation.drafter import Drafter, DrafterKind, NullDrafter
from slipstream.engine.speculation.mtp_compatibility import builtin_mtp
from slipstream.engine.speculation.pace_memory import PaceMemory, pair_key
from slipstream.engine.speculation.paced_drafter import PacedDrafter, PaceProfile
from slipstream.engine.speculation.prompt_lookup import PromptLookupDrafter
from slipstream.errors import DraftMisfit, UsageError

KIND_WORDS = {
    DrafterKind.NONE: "no drafter",
    DrafterKind.DRAFT_MODEL: "a draft model",
    DrafterKind.EAGLE3: "an EAGLE-3 head",
    DrafterKind.MTP: "MTP heads",
    DrafterKind.PROMPT_LOOKUP: "prompt lookup",
}
"""What each way to draft is called in a sentence."""


def open_drafter(
    request: DraftRequest,
    target: Model,
    session: GenerationSession,
    store: MeasurementStore | None = None,
) -> Drafter:
    """A drafter for this session, not yet attached to it; `store` keeps what pacing learns.

    Under the auto pace the costs of this pair are measured first where they are not known yet.
    Raises `DraftMisfit` for a draft that cannot work with the target, `ModelFileError` for a file
    that cannot be used at all, and `UsageError` for a kind that lacks its file.
    """
    kind = _kind_of(request, target)
    if kind is DrafterKind.NONE:
        return NullDrafter()
    if request.pace is Pace.FIXED:
        return _open(kind, request, target, session)
    main = None if kind is DrafterKind.PROMPT_LOOKUP else _open(kind, request, target, session)
    try:
        return _paced(kind, main, request, target, session, store)
    except BaseException:
        if main is not None:
            main.close()
        raise


def _paced(
    kind: DrafterKind,
    main: Drafter | None,
    request: DraftRequest,
    target: Model,
    session: GenerationSession,
    store: MeasurementStore | None,
) -> Drafter:
    key = pair_key(target.path, request.path, str(kind), session)
    memory = PaceMemory(store, key)
    settings = request.settings
    profile = memory.load()
    if profile is None:
        costs = measure_costs(session, settings.n_draft_max)
        if request.path is not None:
            size = read_parts(request.path).whole.file_size / target.parts.whole.file_size
            costs = with_guesses(costs, str(kind), size)
        profile = PaceProfile(costs)
    looks_up = request.looks_up or main is None
    lookup = PromptLookupDrafter(settings) if looks_up else None
    return PacedDrafter(main, lookup, profile, settings, keep=memory.save)


def _open(
    kind: DrafterKind, request: DraftRequest, target: Model, session: GenerationSession
) -> Drafter:
    path = request.path
    if kind is DrafterKind.PROMPT_LOOKUP:
        return PromptLookupDrafter(request.settings)
    if kind is DrafterKind.MTP and path is None:
        return _mtp(target, request, session, owns_model=False)
    assert path is not None
    draft = Model(path, head=kind is DrafterKind.EAGLE3, n_gpu_layers=request.n_gpu_layers)
    try:
        if kind is DrafterKind.EAGLE3:
            return _eagle3(draft, request, session)
        if kind is DrafterKind.MTP:
            return _mtp(draft, request, session, owns_model=True)
        return DraftModelDrafter(
            draft,
            ContextSettings(
                n_ctx=session.n_ctx,
                n_batch=session.n_batch,
                n_threads=request.n_threads or session.n_threads,
                n_threads_batch=request.n_threads or session.n_threads_batch,
                cache_type=request.cache_type,
                flash_attention=session.flash_attention,
            ),
            request.settings,
            abort=session.abort,
            target_n_vocab=target.n_vocab,
        )
    except BaseException:
        draft.close()
        raise


def _eagle3(head: Model, request: DraftRequest, session: GenerationSession) -> Drafter:
    from slipstream.engine.speculation.eagle3 import Eagle3Drafter

    return Eagle3Drafter(
        head,
        session.context,
        request.settings,
        n_threads=request.n_threads or session.n_threads,
        n_threads_batch=request.n_threads or session.n_threads_batch,
    )


def _mtp(
    model: Model, request: DraftRequest, session: GenerationSession, *, owns_model: bool
) -> Drafter:
    from slipstream.engine.speculation.mtp import MtpDrafter

    return MtpDrafter(
        model,
        session.context,
        request.settings,
        n_threads=request.n_threads or session.n_threads,
        n_threads_batch=request.n_threads or session.n_threads_batch,
        owns_model=owns_model,
    )


def _kind_of(request: DraftRequest, target: Model) -> DrafterKind:
    """The kind that is asked for, checked against what the file and the target are."""
    kind, path = request.kind, request.path
    if path is not None:
        if kind in (DrafterKind.NONE, DrafterKind.PROMPT_LOOKUP):
            raise UsageError(
                f"The drafter {kind} takes no file.",
                f"{path.name} would not be used.",
                "Leave out the draft file, or choose another drafter.",
            )
        found = _recognised(target.path, path)
        if kind is not None and kind is not found:
            raise DraftMisfit(
                f"{path.name} is not {KIND_WORDS[kind]}.",
                f"It is {KIND_WORDS[found]}.",
                "Choose the drafter that fits the file, or leave the choice to the app.",
            )
        return found
    if kind in (DrafterKind.DRAFT_MODEL, DrafterKind.EAGLE3):
        raise UsageError(
            f"The drafter {kind} needs a file.", "No draft file was given.", "Give one."
        )
    if kind is None:
        return DrafterKind.MTP if has_mtp(target) else DrafterKind.PROMPT_LOOKUP
    if kind is DrafterKind.MTP and not has_mtp(target):
        raise DraftMisfit(
            f"{target.path.name} has no MTP heads.",
            "Built-in drafting needs a model that was published with them.",
            "Choose another drafter, or give an MTP file for this model.",
        )
    return kind


def has_mtp(target: Model) -> bool:
    """Whether the target holds MTP heads of its own that can draft for it."""
    return builtin_mtp(target.parts.whole) > 0


def _recognised(target: Path, draft: Path) -> DrafterKind:
    verdict = judge_draft(target, draft)
    if not verdict.compatible or verdict.kind is None:
        raise DraftMisfit(
            f"{draft.name} cannot draft for {target.name}.",
            verdict.reason,
            "Choose a draft made for this model, or use prompt lookup.",
        )
    return verdict.kind
