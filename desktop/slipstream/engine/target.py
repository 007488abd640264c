"""A target model, loaded and ready to chat: the model, its chat template and its session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from slipstream.chat.ports import MeasurementStore
from slipstream.engine.chat_template import ChatTemplate, choose_template
from slipstream.engine.file_template import TEMPLATE_KEY, turns_of
from slipstream.engine.gguf import read_header
from slipstream.engine.llama import AbortFlag, Model
from slipstream.engine.losslessness import Progress, check_losslessness
from slipstream.engine.prompt import prompt_tokens
from slipstream.engine.requests import (
    AnswerRequest,
    DraftFacts,
    DraftJudgement,
    DraftRequest,
    LoadRequest,
    LosslessnessReport,
    LosslessnessRequest,
    TargetFacts,
)
from slipstream.engine.session import GenerationRequest, GenerationSession
from slipstream.engine.speculation.compatibility import judge_draft
from slipstream.engine.speculation.drafter import Drafter, NullDrafter
from slipstream.engine.speculation.factory import KIND_WORDS, has_mtp, open_drafter
from slipstream.engine.speculation.paced_drafter import PacedDrafter
from slipstream.engine.tuning import tune_threads, tuned_session
from slipstream.errors import UserError


@dataclass(frozen=True, slots=True)
class PreparedAnswer:
    """A request as the session takes it, the prompt's text, and what was changed to make it."""

    request: GenerationRequest
    text: str
    notes: tuple[str, ...]


def check_model_file(path: Path) -> None:
    """Raise `ModelFileError` for a file that llama.cpp could not even open, in milliseconds."""
    read_header(path)


def _same_file(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:
        return False


class Target:
    """Owns a model and its session; `close()` frees both in the right order.

    Raises `UserError` when the model, its context or the template cannot be used, and
    `LoadCancelled` when `progress` (0.0 to 1.0) returned False.
    """

    def __init__(
        self,
        request: LoadRequest,
        *,
        progress: Callable[[float], bool] | None = None,
        measurements: MeasurementStore | None = None,
    ) -> None:
        self._request = request
        self._measurements = measurements
        self._abort = AbortFlag()
        self._exact = False  # computing so that a draft of the target's own is all accepted
        self._draft: DraftRequest | None = None  # the one in force
        self._drafter: Drafter | None = None  # what it made; a failure puts another in its place
        self.model = Model(request.path, progress=progress)
        try:
            self.template = self._choose_template(request)
            self.session = self._open_session(go_on=lambda: progress is None or progress(1.0))
        except BaseException:
            self.model.close()
            raise

    @property
    def facts(self) -> TargetFacts:
        """What is loaded, and how it runs."""
        session, model, template = self.session, self.model, self.template
        return TargetFacts(
            path=self._request.path,
            n_ctx=session.n_ctx,
            n_ctx_train=model.n_ctx_train,
            n_batch=session.n_batch,
            n_threads=session.n_threads,
            n_threads_batch=session.n_threads_batch,
            flash_attention=session.flash_attention,
            template_name=template.name,
            template_variables=template.variables,
            notes=template.notes,
            has_mtp=has_mtp(model),
        )

    def _choose_template(self, request: LoadRequest) -> ChatTemplate:
        model = self.model

        def has_token(text: str) -> bool:
            tokens = model.tokenize(text)
            return len(tokens) == 1 and model.token_text(tokens[0]) == text

        return choose_template(
            model.metadata(TEMPLATE_KEY),
            request.chat_template,
            override_name=request.chat_template_name,
            bos_token=model.token_text(model.bos),
            eos_token=model.token_text(model.eos),
            architecture=model.metadata("general.architecture") or "",
            has_token=has_token,
        )

    def prepare(self, request: AnswerRequest) -> PreparedAnswer:
        """Render and tokenise a conversation. Raises `TemplateError` or `UsageError`."""
        rendered = self.template.render(
            turns_of(request.messages, request.system_prompt), variables=request.template_variables
        )
        ends = {self.model.token_text(token) for token in self.model.turn_ends}
        # gpt-oss ends its reasoning, not its turn, with what its vocabulary calls an end of turn
        ends -= rendered.reasoning.visible_control_texts
        return PreparedAnswer(
            request=GenerationRequest(
                prompt=prompt_tokens(self.model, rendered.text),
                settings=request.settings,
                reasoning=rendered.reasoning,
                end_strings=tuple(sorted(end for end in ends if end in self.template.source)),
                verify=request.verify,
            ),
            text=rendered.text,
            notes=rendered.notes,
        )

    def set_draft(self, request: DraftRequest) -> DraftFacts:
        """Draft this way from the next answer on. Raises `UserError`; then nothing is drafted.

        Where only the settings differ from those in force, nothing is loaded anew.
        """
        drafter, before = self.session.drafter, self._draft
        same = before is not None and replace(request, settings=before.settings) == before
        if same and drafter is self._drafter:
            drafter.configure(request.settings)
            self._draft = request
            return self._draft_facts()
        self._draft = None
        self.session.set_drafter(NullDrafter())
        own = request.path is not None and _same_file(request.path, self.model.path)
        self._compute_exactly(own)
        drafter = open_drafter(request, self.model, self.session, self._measurements)
        self.session.set_drafter(drafter)
        self._draft, self._drafter = request, drafter
        return self._draft_facts()

    def set_threads(self, n_threads: int, n_threads_batch: int) -> DraftFacts | None:
        """Compute with so many threads from the next pass on, 0 as in `LoadRequest`.

        Between answers. A draft is opened anew, and told of; raises `UserError` where that fails.
        """
        self._request = replace(self._request, n_threads=n_threads, n_threads_batch=n_threads_batch)
        tune_threads(self._request, self.session, self._measurements)
        draft, self._draft = self._draft, None
        return None if draft is None else self.set_draft(draft)

    def _open_session(self, go_on: Callable[[], bool] = lambda: True) -> GenerationSession:
        return tuned_session(
            self._request,
            self.model,
            self._measurements,
            exact=self._exact,
            abort=self._abort,
            go_on=go_on,
        )

    def _compute_exactly(self, exact: bool) -> None:
        """Let passes over several tokens round as those over one do, or compute as fast as can be.

        A model that drafts for itself shows it: with the first, what it drafts is accepted.
        """
        if exact == self._exact or (exact and self.session.flash_attention):
            return
        if self._request.flash_attention is not None:
            return
        before, self._exact = self.session, exact
        try:
            self.session = self._open_session()
        except BaseException:
            self._exact = not exact
            raise
        before.close()

    def _draft_facts(self) -> DraftFacts:
        assert self._draft is not None
        drafter = self.session.drafter
        looks_up = isinstance(drafter, PacedDrafter) and drafter.looks_up
        return DraftFacts(drafter.kind, self._draft.path, looks_up)

    def check_losslessness(
        self, request: LosslessnessRequest, progress: Progress
    ) -> LosslessnessReport | None:
        """Answer twice, with the draft and without; None when cancelled. Raises `UserError`."""
        return check_losslessness(
            self.session,
            self.prepare(request.answer).request,
            request.max_tokens,
            self.model.token_text,
            progress,
        )

    def judge_draft(self, path: Path) -> DraftJudgement:
        """Whether a file can draft for this target, from the headers alone. Never raises."""
        try:
            verdict = judge_draft(self.model.path, path)
        except UserError as error:
            return DraftJudgement(path, False, error.title)
        words = KIND_WORDS[verdict.kind] if verdict.kind and verdict.compatible else verdict.reason
        return DraftJudgement(path, verdict.compatible, words)

    def prepare_raw(self, text: str, request: AnswerRequest) -> PreparedAnswer:
        """Tokenise a text that is to be continued as it stands, without a template."""
        prompt = GenerationRequest(
            prompt=prompt_tokens(self.model, text),
            settings=request.settings,
            verify=request.verify,
        )
        return PreparedAnswer(prompt, text, ())

    def close(self) -> None:
        """Free session and model. Calling it twice is harmless."""
        try:
            self.session.close()
        finally:
            self.model.close()
