"""What the reranker learns from: questions, each with eight texts that recall might show, as tokens.

Two sources. ``corpora/`` holds small corpora of ours: notes and talks, with questions that a text answers and questions
that look like it and that none does. A folder of public data, if there is one (README), adds questions of other kinds.
Whatever the source, wrong texts are those nearest to the question by MiniLM. Some questions are asked again without the
right text, so that nothing among the eight answers, however near it is; and some of a corpus that has no part in them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # onnxruntime reports its user unless it is told not to

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

HERE = Path(__file__).parent
MINILM = HERE.parents[1] / "models" / "holdfast_models" / "minilm"
CANDIDATES = 8
"""How many texts a question is asked of at once: those that recall would show first."""
_QUESTION, _PASSAGE, _BEFORE = 40, 92, 24  # tokens, as holdfast.providers.reranker reads them
_CLS, _SEP = 101, 102
_TAKEN_OUT = 3  # of so many answered questions one is asked again without its answer
_ELSEWHERE = 5  # of so many questions one is asked of the next corpus as well
_A_FEW_WORDS = 8
_AT_ONCE = 300  # sentences of a long text among which the nearest are looked for


class Corpus(NamedTuple):
    """Texts, the speaker of each, whether each follows the one before, and questions with the place they are about."""

    texts: Sequence[str]
    speakers: Sequence[str]
    talk: bool
    asked: Sequence[tuple[str, int, bool]]


class Groups(NamedTuple):
    """Questions with their candidates, the first of which answers if anything does. Arrays, so that they can be kept.

    ``ids`` are the tokens of all pairs one after another; ``length`` is that of each pair, and ``starts`` where in it
    the passage does. For each question: whether it is ``answered``, its ``corpus``, and whether that is ``ours``.
    """

    ids: Any
    begins: Any
    length: Any
    starts: Any
    answered: Any
    corpus: Any
    ours: Any


class Reader:
    """Texts as tokens and as MiniLM's vectors."""

    def __init__(self) -> None:
        self.tokens = Tokenizer.from_file(str(MINILM / "tokenizer.json"))
        self.tokens.no_padding()
        self.tokens.no_truncation()
        self.model = onnxruntime.InferenceSession(str(MINILM / "model.onnx"))

    def pair(self, question: str, corpus: Corpus, at: int) -> tuple[list[int], int]:
        speaker, text = corpus.speakers[at], corpus.texts[at]
        asked = [_CLS, *self._read(question, _QUESTION), _SEP]
        said = [*self._read(f"{speaker}: {text}" if speaker else text, _PASSAGE), _SEP]
        if corpus.talk and at:
            said += [*self._read(corpus.texts[at - 1], _BEFORE), _SEP]
        return asked + said, len(asked)

    def vectors(self, texts: Sequence[str]) -> Any:
        return np.stack([self._vector(text) for text in texts])

    def _read(self, text: str, most: int) -> list[int]:
        found: list[int] = self.tokens.encode(text, add_special_tokens=False).ids[:most]
        return found

    def _vector(self, text: str) -> Any:
        ids = np.array([self.tokens.encode(text).ids[:256]])
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden = self.model.run(None, {item.name: given[item.name] for item in self.model.get_inputs()})[0]
        mean = hidden[0].mean(axis=0)
        return mean / np.linalg.norm(mean)


def read(public: Path | None) -> Groups:
    """All questions of ``corpora/`` and of a folder of public data."""
    reader, pairs, answered, numbers, own = Reader(), [], [], [], []
    sources = [(corpus, True) for corpus in ours()]
    sources += [(corpus, False) for corpus in (published(public) if public else ())]
    elsewhere: list[str] = []
    for number, (corpus, is_ours) in enumerate(sources):
        for group, has in _of(corpus, elsewhere, reader):
            pairs += group
            answered.append(has)
            numbers.append(number)
            own.append(is_ours)
        elsewhere = [question for question, _, _ in corpus.asked]
        print(f"\r{number + 1} of {len(sources)} corpora, {len(answered)} questions", end="", flush=True)
    print()
    length = np.array([len(ids) for ids, _ in pairs], dtype=np.int32)
    return Groups(
        np.concatenate([np.array(ids, dtype=np.int32) for ids, _ in pairs]),
        np.cumsum(length) - length,
        length,
        np.array([starts for _, starts in pairs], dtype=np.int32),
        np.array(answered), np.array(numbers), np.array(own),
    )  # fmt: skip


def _of(corpus: Corpus, elsewhere: Sequence[str], reader: Reader) -> Iterator[tuple[list[tuple[list[int], int]], bool]]:
    """Each question with the right text first and those nearest to it; some again without the right one."""
    if len(corpus.texts) <= CANDIDATES:
        return
    vectors = reader.vectors(corpus.texts)

    def read(question: str, places: Sequence[int]) -> list[tuple[list[int], int]]:
        return [reader.pair(question, corpus, at) for at in places[:CANDIDATES]]

    def nearest(question: str) -> list[int]:
        found: list[int] = np.argsort(-(vectors @ reader.vectors([question])[0]), kind="stable").tolist()
        return found

    for number, (question, place, answered) in enumerate(corpus.asked):
        near = [at for at in nearest(question) if at != place]
        yield read(question, [place, *near]), answered
        if answered and number % _TAKEN_OUT == 0:
            yield read(question, near), False
    for question in elsewhere[::_ELSEWHERE]:
        yield read(question, nearest(question)), False


def ours() -> Iterator[Corpus]:
    for file in sorted((HERE / "corpora").glob("*.jsonl")):
        for line in filter(None, file.read_text(encoding="utf-8").splitlines()):
            one = json.loads(line)
            asked = [(*each, True) for each in one["asks"]] + [(*each, False) for each in one["unanswered"]]
            yield Corpus(one["texts"], [""] * len(one["texts"]), one["kind"] != "notes", asked)


def published(folder: Path) -> Iterator[Corpus]:
    """SQuAD 1.1 by sentences, the training meetings of QMSum, chats of Molweni, CLAP-NQ; README has where from."""
    for part in ("dev", "test"):
        yield from _squad(folder / "nqg" / f"src-{part}.txt", folder / "nqg" / f"tgt-{part}.txt")
    yield from map(_meeting, sorted((folder / "qmsum").glob("*.json")))
    for dialogue in json.loads((folder / "molweni.json").read_text(encoding="utf-8"))["data"]["dialogues"]:
        yield _chat(dialogue)
    for file in sorted(folder.glob("clapnq*.jsonl")):
        yield from (_article(json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines())


def _squad(sentences: Path, questions: Path) -> Iterator[Corpus]:
    said, asked = (file.read_text(encoding="utf-8").splitlines() for file in (sentences, questions))
    once = list(dict.fromkeys(said))
    place = {text: at for at, text in enumerate(once)}
    for first in range(0, len(once), _AT_ONCE):
        texts = [_joined(text) for text in once[first : first + _AT_ONCE]]
        here = [(_joined(question), place[text] - first, True) for text, question in zip(said, asked, strict=True)
                if first <= place[text] < first + _AT_ONCE]  # fmt: skip
        yield Corpus(texts, [""] * len(texts), False, here)


def _meeting(file: Path) -> Corpus:
    """A question with the turns it is about, of which the nearest by words stands for all."""
    meeting = json.loads(file.read_text(encoding="utf-8"))
    turns = [(turn["speaker"], turn["content"]) for turn in meeting["meeting_transcripts"]]
    kept = [at for at, (_, text) in enumerate(turns) if len(text.split()) >= _A_FEW_WORDS]
    asked = []
    for one in meeting["specific_query_list"]:
        words = set(one["query"].lower().split())
        spans = [(int(start), int(end)) for start, end in one["relevant_text_span"]]
        held = {
            place: len(words & set(turns[at][1].lower().split()))
            for place, at in enumerate(kept)
            if any(start <= at <= end for start, end in spans)
        }
        if held:
            asked.append((one["query"], max(held, key=held.__getitem__), True))
    return Corpus([turns[at][1] for at in kept], [turns[at][0] for at in kept], True, asked)


def _chat(dialogue: Any) -> Corpus:
    turns, asked = dialogue["edus"], []
    ends = np.cumsum([len(turn["speaker"]) + len(turn["text"]) + 3 for turn in turns])
    for one in dialogue["qas"]:
        if one["is_impossible"] or not one["answers"]:
            continue
        at = int(np.searchsorted(ends, one["answers"][0]["answer_start"], side="right"))
        if (
            at < len(turns)
            and one["answers"][0]["text"].lower() in f"{turns[at]['speaker']}: {turns[at]['text']}".lower()
        ):
            asked.append((one["question"], at, True))
    return Corpus([turn["text"] for turn in turns], [turn["speaker"] for turn in turns], True, asked)


def _article(one: Any) -> Corpus:
    """A passage by sentences, with one question that a sentence of it answers, or none does."""
    passage = one["passages"][0]
    right = [text for answer in one["output"] for text in answer.get("selected_sentences") or ()]
    place = next((at for at, text in enumerate(passage["sentences"]) if text in right), None)
    texts = [_joined(text) for text in passage["sentences"]]
    return Corpus(texts, [""] * len(texts), False, [(one["input"], place or 0, place is not None)])


def _joined(text: str) -> str:
    """Words and signs that were put apart, together again."""
    text = text.strip().replace("-lrb- ", "(").replace(" -rrb-", ")").replace("`` ", '"').replace(" ''", '"')
    for sign in (".", ",", ";", ":", "?", "!", "%", "n't", "'s", "'m", "'re", "'ve", "'ll", "'d"):
        text = text.replace(f" {sign}", sign)
    return text


def kept(groups: Groups, file: Path) -> None:
    np.savez_compressed(file, **groups._asdict())


def loaded(file: Path) -> Groups:
    with np.load(file) as held:
        return Groups(**{name: held[name] for name in Groups._fields})


def batches(groups: Groups, chosen: Iterable[int], size: int, rng: Any = None) -> Iterator[Any]:
    """The places of groups of like length together, so that little is padding; in another order each time."""
    chosen = np.fromiter(chosen, dtype=int)
    longest = groups.length.reshape(-1, CANDIDATES).max(axis=1)[chosen]
    if rng is not None:
        longest = longest + rng.random(len(longest)) * 8  # or the same ones would meet in every epoch
    order = chosen[np.argsort(longest, kind="stable")]
    parts = [order[at : at + size] for at in range(0, len(order), size)]
    if rng is not None:
        rng.shuffle(parts)
    yield from parts
