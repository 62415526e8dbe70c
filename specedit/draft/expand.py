"""One tree of beliefs: everything that may follow, expanded best first until the budget is spent.

A node carries the places that agree on the path to it. Their next tokens are its children, each as probable as the
places that say so together; what no place accounts for goes to n-grams. The most probable node of all is added next, so
a sure chain grows long and a doubtful point grows wide, by one rule.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from specedit.draft.beliefs import (
    FOLLOW,
    MAX_BELIEFS,
    PROMPT,
    WRITTEN,
    Beliefs,
    answer_state,
    gather,
    weigh,
)
from specedit.draft.edit_cursor import (
    AFTER,
    CURSOR,
    END,
    FRAMED,
    LENGTH,
    MADE,
    OPENED,
    OUTPUT,
    START,
    Texts,
    settle,
    settled,
    site_at,
    site_of,
    token_at,
    token_of,
)
from specedit.draft.native import jit
from specedit.draft.ngrams import Table, followers
from specedit.draft.priors import class_of, group_of, run_bucket
from specedit.draft.suffix_index import BOUNDARY, IndexArrays, find_matches
from specedit.draft.tree import IntArray

Floats = npt.NDArray[np.float64]

#: Token ids, parents, log probabilities and origins of a draft, each [budget].
Nodes = tuple[IntArray, IntArray, Floats, IntArray]

# Whom a node is counted for.
CURSOR_NODE, REPLAY_NODE, LOOKUP_NODE, NGRAM_NODE = range(4)

#: Places that a node keeps.
_KEPT = 8
_LEAST_POOL = 512
_POOL_PER_NODE = 24
_TAIL = 4
_BRANCH_ROOM = MAX_BELIEFS + 24
#: Paths less probable than this are not drafted by n-grams.
_LEAST = 0.0015
#: What no place accounts for must be at least this probable before n-grams are asked.
_LEAST_NOVEL = 0.004
#: Share of the static table in what no place accounts for; the rest comes from the context.
_TABLE_SHARE = 0.7
#: Near nodes are worth more than their probability says: what they settle, the next step need not ask.
_NEAR_DEPTH = 8
_NEAR_BONUS = 20.0


@jit
def draft(
    texts: Texts,
    state: IntArray,
    index: IndexArrays,
    written: IndexArrays,
    resume: IntArray,
    table: Table,
    parameters: Floats,
    survival: Floats,
    barred: npt.NDArray[np.bool_],
    parts: int,
    wide: bool,
    beliefs: Beliefs,
    token_ids: IntArray,
    parents: IntArray,
    log_probs: Floats,
    origins: IntArray,
) -> tuple[int, bool]:
    """Gather the beliefs about what follows and draft from them.

    Args:
        texts, state, index, written, resume, table, parts, beliefs: as for `beliefs.gather`.
        parameters, survival: of `Priors`.
        barred: [vocabulary] tokens that are never drafted.
        wide: whether the draft may branch; else it is a chain.
        token_ids, parents, log_probs, origins: [budget] receive the nodes, best first.

    Returns:
        How many nodes there are, and whether all are counted for the same part.
    """
    count = gather(texts, state, index, written, resume, table, parts, beliefs)
    weigh(beliefs, count, parameters)
    if count == 0 and not wide:
        return 0, True
    budget = len(token_ids)
    sure = count == 1 and answer_state(texts, state) == FOLLOW and _is_plain(texts, state, beliefs, budget)
    nodes = (token_ids, parents, log_probs, origins)
    if sure or not wide:
        size = _chain(texts, state, survival, barred, parts, beliefs, count, nodes)
        return size, size == 0 or origins[0] == origins[size - 1]
    return _expand(texts, state, index, written, table, survival, barred, parts, beliefs, count, nodes), False


@jit
def _is_plain(texts: Texts, state: IntArray, beliefs: Beliefs, tokens: int) -> bool:
    """Whether the only belief reads on in the prediction, with nothing to decide for so many tokens."""
    place = beliefs.places[0]
    if not state[START] <= place < state[END]:
        return False
    begin = place - state[START]
    return not np.any(texts.sites[begin : begin + tokens] >= 0)


@jit
def _origin(place: int, group: int, framed: int, parts: int) -> int:
    """The part that a node is counted for: the one that its place comes from, where that takes part."""
    if place >= MADE:
        origin = REPLAY_NODE if place - MADE >= framed else CURSOR_NODE
    else:
        origin = LOOKUP_NODE if group in (WRITTEN, PROMPT) else CURSOR_NODE
    if not parts >> origin & 1:
        origin = NGRAM_NODE
        while origin > 0 and not parts >> origin & 1:
            origin -= 1
    return origin


@jit
def _chain(
    texts: Texts,
    state: IntArray,
    survival: Floats,
    barred: npt.NDArray[np.bool_],
    parts: int,
    beliefs: Beliefs,
    count: int,
    nodes: Nodes,
) -> int:
    """Read on from the best belief alone."""
    token_ids, parents, log_probs, origins = nodes
    best = 0
    for row in range(count):
        if beliefs.weights[row] > beliefs.weights[best]:
            best = row
    doing = answer_state(texts, state)
    kind = class_of(beliefs.groups[best], doing, beliefs.matches[best])
    prob = beliefs.weights[best]
    came_from = state[CURSOR] if doing == FOLLOW and best == 0 else beliefs.places[best]
    place = beliefs.places[best]
    framed = state[FRAMED]
    origin = _origin(place, beliefs.groups[best], framed, parts)
    # Local names: reading an array out of its tuple counts a reference each time.
    ground, sites = texts.ground, texts.sites
    start, end, budget = state[START], state[END], len(token_ids)
    row = survival[kind]
    size = 0
    while size < budget:
        if place < OUTPUT and (place >= end or place < start or not parts & 2 or sites[place - start] < 0):
            token = ground[place]
            came_from = place + 1
            after = came_from if came_from != end and ground[came_from] >= 0 else settle(texts, state, came_from)
        else:
            made = site_at(texts, state, place, came_from) if parts & 2 else -1
            if made >= 0 and texts.trust[place - start] >= 0.5:
                other = settle(texts, state, MADE + made)
                place = other if other >= 0 else place
            origin = _origin(place, beliefs.groups[best], framed, parts)
            token = token_at(texts, place)
            came_from = place + 1
            after = settle(texts, state, came_from)
        if barred[token]:
            break
        token_ids[size] = token
        parents[size] = size - 1
        log_probs[size] = np.log(prob)
        origins[size] = origin
        size += 1
        place = after
        if place < 0:
            break
        prob = row[run_bucket(size)]
    return size


@jit
def _expand(
    texts: Texts,
    state: IntArray,
    index: IndexArrays,
    written: IndexArrays,
    table: Table,
    survival: Floats,
    barred: npt.NDArray[np.bool_],
    parts: int,
    beliefs: Beliefs,
    count: int,
    nodes: Nodes,
) -> int:
    """Add the best child of all nodes until the budget is spent."""
    token_ids, parents, log_probs, origins = nodes
    ground, output, made_texts, stands_for = texts.ground, texts.output, texts.made, texts.stands_for
    sites, trusts = texts.sites, texts.trust
    start, end, after, length = state[START], state[END], state[AFTER], state[LENGTH]
    opened, framed = state[OPENED], state[FRAMED]
    doing = answer_state(texts, state)
    places, groups, matches, weights = beliefs.places, beliefs.groups, beliefs.matches, beliefs.weights
    budget = len(token_ids)
    # Children that may become nodes.
    room = max(_LEAST_POOL, _POOL_PER_NODE * budget)
    pool_token = np.empty(room, dtype=np.int64)
    pool_parent = np.empty(room, dtype=np.int64)
    pool_depth = np.empty(room, dtype=np.int64)
    pool_prob = np.empty(room)  # given the parent
    pool_path = np.empty(room)
    pool_origin = np.empty(room, dtype=np.int64)
    pool_kept = np.empty(room, dtype=np.int64)
    pool_place = np.empty((room, _KEPT), dtype=np.int64)
    pool_class = np.empty((room, _KEPT), dtype=np.int64)
    pool_run = np.empty((room, _KEPT), dtype=np.int64)
    pool_weight = np.empty((room, _KEPT))
    pooled = 0
    heap = np.empty(room, dtype=np.int64)
    heap_key = np.empty(room)
    heaped = 0
    node_pool = np.empty(budget, dtype=np.int64)
    # The places that speak at the node being expanded.
    place_at = np.empty(_BRANCH_ROOM, dtype=np.int64)
    class_at = np.empty(_BRANCH_ROOM, dtype=np.int64)
    run_at = np.empty(_BRANCH_ROOM, dtype=np.int64)
    weight_at = np.empty(_BRANCH_ROOM)
    token_row = np.empty(_BRANCH_ROOM, dtype=np.int64)
    child_of = np.empty(_BRANCH_ROOM, dtype=np.int64)
    tail = np.empty(_TAIL, dtype=np.int32)
    ends = np.empty(8, dtype=np.int64)
    lengths = np.empty(8, dtype=np.int64)
    next_ids = np.empty(24, dtype=np.int32)
    next_probs = np.empty(24)

    size = 0
    node = -1
    while True:
        # 1. What speaks at this node.
        spoken = 0
        mass = 0.0
        at = -1 if node < 0 else node_pool[node]
        path, depth = (1.0, 0) if node < 0 else (pool_path[at], pool_depth[at])
        for row in range(count if node < 0 else pool_kept[at]):
            if node < 0:
                place, weight, run = places[row], weights[row], 0
                kind = class_of(groups[row], doing, matches[row])
                came_from = state[CURSOR] if doing == FOLLOW and row == 0 else place
            else:
                came_from, kind, run = pool_place[at, row], pool_class[at, row], pool_run[at, row]
                place = settled(ground, made_texts, stands_for, end, after, length, came_from)
                if place < 0:
                    continue
                weight = pool_weight[at, row] * survival[kind, run_bucket(run)]
            mass += weight
            made = site_of(sites, start, end, opened, place, came_from) if parts & 2 else -1
            if made >= 0 and spoken < _BRANCH_ROOM:
                # The old text may be replaced here: both ways are read on in.
                other = settled(ground, made_texts, stands_for, end, after, length, MADE + made)
                if other >= 0:
                    trust = trusts[place - start]
                    place_at[spoken], class_at[spoken], run_at[spoken] = other, kind, run
                    weight_at[spoken] = weight * trust
                    weight *= 1.0 - trust
                    spoken += 1
            if spoken < _BRANCH_ROOM:
                place_at[spoken], class_at[spoken], run_at[spoken] = place, kind, run
                weight_at[spoken] = weight
                spoken += 1
        copied = spoken
        novel = max(0.0, 1.0 - mass)

        # 2. What the context's n-grams add to it.
        listed = 0
        if parts & 8 and novel * path >= _LEAST_NOVEL:
            walker, filled = node, _TAIL
            while walker >= 0 and filled > 0:
                filled -= 1
                tail[filled] = token_ids[walker]
                walker = parents[walker]
            back = length - 1
            while filled > 0:
                filled -= 1
                tail[filled] = output[back] if back >= 0 else BOUNDARY
                back -= 1
            if node >= 0:
                share = novel * (1.0 - _TABLE_SHARE)
                total = 0.0
                first = spoken
                for source in range(2):
                    if source == 0:
                        found = find_matches(written, tail, _TAIL, 3, ends[:4], lengths)
                    else:
                        found = find_matches(index, tail, _TAIL, 3, ends[:6], lengths)
                    for row in range(found):
                        if spoken == _BRANCH_ROOM or lengths[row] < 1:
                            continue
                        place = ends[row] + (OUTPUT if source == 0 else 0)
                        place = settled(ground, made_texts, stands_for, end, after, length, place)
                        if place < 0:
                            continue
                        place_at[spoken] = place
                        class_at[spoken] = class_of(WRITTEN if source == 0 else PROMPT, doing, lengths[row])
                        run_at[spoken] = 0
                        weight_at[spoken] = lengths[row] * 1.0
                        total += weight_at[spoken]
                        spoken += 1
                for row in range(first, spoken):
                    weight_at[row] *= share / max(total, 4.0)
            least = _LEAST / (novel * path * _TABLE_SHARE)
            listed = followers(table, int(tail[_TAIL - 2]), int(tail[_TAIL - 1]), least, next_ids, next_probs)

        # 3. Children: one for each token.
        first_child = pooled
        for row in range(spoken):
            token = token_of(ground, output, made_texts, place_at[row])
            token_row[row] = token
            child_of[row] = -1
            if barred[token] or weight_at[row] <= 0.0:
                continue
            for child in range(first_child, pooled):
                if pool_token[child] == token:
                    child_of[row] = child
                    break
            if child_of[row] < 0 and pooled < room:
                child_of[row] = pooled
                pool_token[pooled] = token
                pool_prob[pooled] = 0.0
                pool_kept[pooled] = 0
                pool_origin[pooled] = NGRAM_NODE
                pooled += 1
        for child in range(first_child, pooled):
            best = 0.0
            for row in range(spoken):
                if child_of[row] != child:
                    continue
                pool_prob[child] += weight_at[row]
                if weight_at[row] > best:
                    best = weight_at[row]
                    if row >= copied:
                        pool_origin[child] = NGRAM_NODE
                    else:
                        pool_origin[child] = _origin(place_at[row], group_of(class_at[row]), framed, parts)
                # Keep the heaviest places, distinct ones.
                known = -1
                kept = pool_kept[child]
                lightest = 0
                for slot in range(kept):
                    if pool_place[child, slot] == place_at[row] + 1:
                        known = slot
                    if pool_weight[child, slot] < pool_weight[child, lightest]:
                        lightest = slot
                if known >= 0:
                    pool_weight[child, known] += weight_at[row]
                    continue
                if kept < _KEPT:
                    slot = kept
                    pool_kept[child] += 1
                elif pool_weight[child, lightest] < weight_at[row]:
                    slot = lightest
                else:
                    continue
                pool_place[child, slot] = place_at[row] + 1
                pool_class[child, slot] = class_at[row]
                pool_run[child, slot] = run_at[row] + 1
                pool_weight[child, slot] = weight_at[row]
        for row in range(listed):
            token = next_ids[row]
            if barred[token]:
                continue
            known = -1
            for child in range(first_child, pooled):
                if pool_token[child] == token:
                    known = child
                    break
            prob = novel * _TABLE_SHARE * next_probs[row]
            if known >= 0:
                pool_prob[known] += prob
            elif pooled < room:
                pool_token[pooled] = token
                pool_prob[pooled] = prob
                pool_kept[pooled] = 0
                pool_origin[pooled] = NGRAM_NODE
                pooled += 1
        for child in range(first_child, pooled):
            prob = min(pool_prob[child], 1.0)
            pool_prob[child] = prob
            pool_parent[child] = node
            pool_depth[child] = depth + 1
            pool_path[child] = path * prob
            for slot in range(pool_kept[child]):
                pool_weight[child, slot] /= prob
            if heaped < room:
                key = pool_path[child] * (1.0 + _NEAR_BONUS / (depth + 1.0))
                heaped = _push(heap, heap_key, heaped, child, key)

        # 4. The best child of all becomes the next node.
        if size == budget or heaped == 0:
            return size
        best_child, heaped = _pop(heap, heap_key, heaped)
        token_ids[size] = pool_token[best_child]
        parents[size] = pool_parent[best_child]
        log_probs[size] = np.log(pool_prob[best_child])
        origins[size] = pool_origin[best_child]
        node_pool[size] = best_child
        node = size
        size += 1
        if size == budget:
            return size


@jit
def _push(heap: IntArray, keys: Floats, size: int, item: int, key: float) -> int:
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if keys[parent] >= key:
            break
        heap[at], keys[at] = heap[parent], keys[parent]
        at = parent
    heap[at], keys[at] = item, key
    return size + 1


@jit
def _pop(heap: IntArray, keys: Floats, size: int) -> tuple[int, int]:
    top = heap[0]
    size -= 1
    item, key = heap[size], keys[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= key:
            break
        heap[at], keys[at] = heap[child], keys[child]
        at = child
    heap[at], keys[at] = item, key
    return top, size
