import logging

import numpy as np
import pytest

from specedit.draft.tree import DraftTree
from specedit.integrations.rows import Rows, likeliest_chain
from specedit.integrations.vllm import drafter_for
from tests.tiny_codec import TinyCodec
from tests.unit.integrations.batch import Batch, Scripted

FILES = [
    "".join(f"def {name}_{n}(total, count):\n    return total * {n} - count\n\n\n" for n in range(6))
    for name in ("price", "weight", "length")
]
CODEC = TinyCodec([*FILES, "```python\n", "\n```", "Rename total to amount.", "amount", "Something else entirely"])
END = CODEC.special_id


def request(number=0):
    """Rename a variable throughout a file."""
    file = FILES[number]
    prompt = f"```python\n{file}```\nRename total to amount."
    answer = f"```python\n{file.replace('total', 'amount')}```"
    return Scripted([END, *CODEC.encode(prompt), END], [*CODEC.encode(answer), END])


class Begun:
    """Makes drafters, and counts them."""

    def __init__(self):
        self.count = 0
        self.vocabulary = CODEC.vocabulary()

    def __call__(self, prompt):
        self.count += 1
        return drafter_for(prompt, self.vocabulary)


@pytest.fixture
def begun():
    return Begun()


def rows(begun, **settings):
    settings = {"draft_tokens": 16, "context_tokens": 2000} | settings
    return Rows(begun, vocab_size=CODEC.size, special_ids=[END], **settings)


def alone(number):
    """The drafts of a request that runs by itself."""
    one = request(number)
    Batch(rows(Begun()).propose, one).run()
    return one.drafts


def test_an_edit_takes_few_steps(begun):
    one = request()
    Batch(rows(begun).propose, one).run()
    assert len(one.drafts) < len(one.answer) / 8
    assert one.drafts[-1] == []  # nothing follows the end


def test_requests_together_are_drafted_as_each_alone(begun):
    requests = [request(number) for number in range(3)]
    Batch(rows(begun).propose, *requests).run()
    assert [one.drafts for one in requests] == [alone(number) for number in range(3)]


def test_requests_whose_rows_are_exchanged_at_every_step_go_on(begun):
    requests = [request(number) for number in range(3)]
    batch = Batch(rows(begun).propose, *requests)
    while batch.requests:
        batch.step()
        batch.condense()
        batch.requests.reverse()
    assert [one.drafts for one in requests] == [alone(number) for number in range(3)]
    assert begun.count == 3


def test_equal_requests_are_drafted_alike(begun):
    requests = [request(), request()]
    batch = Batch(rows(begun).propose, *requests)
    batch.step()
    batch.requests.reverse()
    batch.run()
    assert requests[0].drafts == requests[1].drafts == alone(0)
    assert begun.count == 2


def test_a_preempted_request_goes_on_where_it_was(begun):
    first, second = request(0), request(1)
    batch = Batch(rows(begun).propose, first, second)
    batch.step()
    batch.step()
    batch.preempt(second)
    batch.step()
    batch.requests.append(second)
    batch.step(reading=[second])
    assert not second.draft
    batch.run()
    assert begun.count == 2
    assert first.drafts == alone(0)
    assert len(second.drafts) <= len(alone(1)) + 1  # one draft was lost


def test_a_request_whose_drafter_was_not_kept_soon_drafts_again(begun):
    one = request()
    batch = Batch(rows(begun, away_bytes=0).propose, one)
    batch.step()
    batch.step()
    batch.preempt(one)
    batch.step()
    batch.requests.append(one)
    batch.run()
    assert begun.count == 2
    assert len(one.drafts) <= len(alone(0)) + 4


def test_steps_that_nobody_asked_drafts_for_are_made_up(begun):
    """Near the end of the context vLLM asks for no drafts, for any row."""
    one = request()
    batch = Batch(rows(begun).propose, one)
    batch.step()
    one.draft = []
    for _ in range(5):
        one.emit()
    batch.run()
    assert begun.count == 1
    assert len(one.drafts) <= len(alone(0))


def test_the_next_turn_of_a_chat_is_a_new_request(begun):
    first = request(0)
    drafted = rows(begun).propose
    batch = Batch(drafted, first)
    while first.done < len(first.answer) // 2:
        batch.step()
    batch.requests = []  # the client has read enough
    batch.step()
    asked = f"```python\n{FILES[1]}```\nRename total to amount."
    prompt = [*first.text, END, *CODEC.encode(asked), END]
    second = Scripted(prompt, request(1).answer)
    Batch(drafted, second).run()
    assert begun.count == 2
    assert len(second.drafts) <= len(alone(1)) + 1


def test_a_prompt_that_is_still_being_read_gets_no_draft(begun):
    one, other = request(0), request(1)
    batch = Batch(rows(begun).propose, one, other)
    batch.step(reading=[other])
    assert begun.count == 1
    assert other.draft == []
    batch.run()
    assert other.drafts == alone(1)


def test_requests_that_ended_are_forgotten(begun):
    kept = rows(begun)
    Batch(kept.propose, request(0), request(1)).run()
    Batch(kept.propose).step()
    assert kept.memory_bytes == 0


def test_those_that_may_come_back_take_bounded_memory(begun):
    kept = rows(begun, away_bytes=400_000)
    for number in range(30):
        one = request(number % 3)
        Batch(kept.propose, Scripted([*one.prompt, number], one.answer)).step()
    Batch(kept.propose).step()
    assert 0 < kept.memory_bytes <= 400_000


def test_drafts_keep_to_their_length_and_to_the_context(begun):
    one = request()
    Batch(rows(begun, draft_tokens=5).propose, one).run()
    assert max(map(len, one.drafts)) == 5
    near = request()
    context = len(near.prompt) + 40
    batch = Batch(rows(begun, context_tokens=context).propose, near)
    while len(near.text) < context:
        batch.step()
        assert len(near.text) + len(near.draft) < context or not near.draft


def test_a_drafter_that_fails_leaves_the_others_at_work(begun, caplog):
    class Broken:
        memory_bytes = 0

        def commit(self, token_ids):
            raise IndexError("lost")

        def propose(self, budget):
            return DraftTree.chain([])

    broken = [request(1), request(2)]
    prompts = [one.prompt for one in broken]
    one = request(0)
    made = rows(lambda prompt: Broken() if prompt.tolist() in prompts else begun(prompt))
    with caplog.at_level(logging.WARNING):
        Batch(made.propose, broken[0], one, broken[1]).run()
    assert not any(broken[0].drafts + broken[1].drafts)
    assert one.drafts == alone(0)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("wrong", [-1, CODEC.size, 2**31 - 1])
@pytest.mark.parametrize("place", ["prompt", "answer"])
def test_what_is_no_token_is_answered_with_no_draft(begun, caplog, wrong, place):
    one, other = request(0), request(1)
    if place == "prompt":
        one.prompt = [*one.prompt, wrong]
    else:
        one.answer = [*one.answer[:20], wrong, *one.answer[20:]]
    batch = Batch(rows(begun).propose, one, other)
    batch.step()
    batch.requests.reverse()
    batch.run()
    assert one.drafts[-2] == []
    assert other.drafts == alone(1)


def test_a_chat_without_code_is_drafted_from_what_it_repeats(begun):
    words = CODEC.encode("Something else entirely, total count total count total count. ")
    one = Scripted([END, *words, END], [*words * 3, END])
    Batch(rows(begun).propose, one).run()
    assert len(one.drafts) < len(one.answer) / 2


def test_the_likeliest_chain_ends_where_it_is_no_longer_believed():
    tree = DraftTree.of([1, 2, 3, 4, 5], [-1, 0, 1, 0, 2], np.log([0.9, 0.8, 0.5, 0.1, 0.2]).tolist())
    assert likeliest_chain(tree, 8, 0.3) == [1, 2, 3]
    assert likeliest_chain(tree, 8, 0.5) == [1, 2]
    assert likeliest_chain(tree, 1, 0.0) == [1]
    assert likeliest_chain(tree, 8, 0.0) == [1, 2, 3, 5]
    assert likeliest_chain(DraftTree.chain([]), 8, 0.0) == []
