"""Edits that repeat: what one example teaches about the lines ahead."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specedit.edit.repeat import Prediction, Repeats


def taught(old: str, new: str) -> Repeats:
    repeats = Repeats()
    repeats.learn([old], [new])
    return repeats


def texts(predictions: list[Prediction]) -> list[str]:
    return [prediction.text for prediction in predictions]


# language, an old line, its new one, a line ahead, what it becomes
CASES = """
python | count = 1 | total = 1 | return f(count) | return f(total)
python | user_name = 1 | account_name = 1 | class UserName: | class AccountName:
python | user_name = 1 | account_name = 1 | x = USER_NAME | x = ACCOUNT_NAME
python | user_name = 1 | account_name = 1 | def get_user_name(self): | def get_account_name(self):
python | user_name = 1 | account_name = 1 | for it in user_names: | for it in account_names:
python | user_name = 1 | account_name = 1 | # the user name, and more | # the account name, and more
python | self.assertEqual(a, b) | assert a == b | self.assertEqual(len(x), f(1, 2)) | assert len(x) == f(1, 2)
python | self.assertTrue(ok) | assert ok | self.assertTrue(is_x(a, b)) | assert is_x(a, b)
python | print("hi %s" % name) | print(f"hi {name}") | log("bye %s" % user.id) | log(f"bye {user.id}")
python | p = os.path.join(root, name) | p = root / name | q = os.path.join(a.b, 'x') | q = a.b / 'x'
python | print x | print(x) | print y + 3 | print(y + 3)
python | from a.b import c | from a.z import c | from a.b import d, e | from a.z import d, e
python | import urllib2 | import requests | r = urllib2.get(u) | r = requests.get(u)
python | if x == None: | if x is None: | while y == None and z: | while y is None and z:
python | def f(a): | def f(a) -> None: | def g(b, c): | def g(b, c) -> None:
python | def f(a): | def f(a, ctx=None): | def g(self, b): | def g(self, b, ctx=None):
python | foo(x) | foo(x, timeout=timeout) | y = foo(a, b[1, 2]) | y = foo(a, b[1, 2], timeout=timeout)
python | foo(x) | foo(x, timeout=timeout) | y = foo() | y = foo(timeout=timeout)
python | foo(x, timeout=3) | foo(x) | y = foo(a, timeout=g(5, 6)) | y = foo(a)
python | a = 'b' | a = "b" | print('hi', x['k']) | print("hi", x["k"])
python | x = obj.getName() | x = obj.name | print(self.other.getName(), 3) | print(self.other.name, 3)
python | return load(u) | return await load(u) | x = load(v) | x = await load(v)
python | python_requires = 3.10 | python_requires = 3.11 | - "3.10" | - "3.11"
javascript | let x = 1; | let x = 1 | let yz = call(); | let yz = call()
javascript | var x = 1; | const x = 1; | var y = f(2); | const y = f(2);
javascript | assert.equal(foo(), 3); | expect(foo()).toBe(3); | assert.equal(bar, "q, r"); | expect(bar).toBe("q, r");
javascript | userName = 1 | accountName = 1 | getUserName(userNameList) | getAccountName(accountNameList)
javascript | throw new Error("x"); | throw new AppError("x"); | throw new Error(`y`); | throw new AppError(`y`);
typescript | name: string | name: string, | size: number | size: number,
typescript | const a: string = f(b) | const a: Name = f(b) | let c: string = g(d) | let c: Name = g(d)
typescript | interface Foo { | export interface Foo { | interface Bar { | export interface Bar {
go | err := doThing(x) | err := doThing(ctx, x) | err := doThing(y, z) | err := doThing(ctx, y, z)
go | log.Printf("a") | logger.Printf("a") | log.Fatal(err) | logger.Fatal(err)
rust | fn foo() { | pub fn foo() { | fn bar(x: u8) { | pub fn bar(x: u8) {
rust | value.clone() | Arc::clone(&value) | f(other.clone()) | f(Arc::clone(&other))
rust | Foo::new(1) | Foo::new(1)? | let x = Foo::new(2, 3); | let x = Foo::new(2, 3)?;
rust | let a = foo(b); | let a = foo(&b); | let c = foo(d); | let c = foo(&d);
c | int *p = malloc(n); | int *p = xmalloc(n); | char *q = malloc(sizeof(x) * 3); | char *q = xmalloc(sizeof(x) * 3);
c | foo(a, b, c); | foo(a, c); | foo(x, &y, z); | foo(x, z);
c | return -1; | return ERROR; | if (!p) return -1; | if (!p) return ERROR;
c | #define OLD_FLAG 1 | #define NEW_FLAG 1 | if (x & OLD_FLAG) | if (x & NEW_FLAG)
"""


def table(cases: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split(" | ")] for line in cases.strip().split("\n")]


@pytest.mark.parametrize(("language", "old", "new", "ahead", "becomes"), table(CASES))
def test_one_example_is_applied_to_a_line_ahead(language: str, old: str, new: str, ahead: str, becomes: str) -> None:
    assert becomes in texts(taught(old, new).predict(ahead))


@pytest.mark.parametrize(("language", "old", "new", "ahead", "becomes"), table(CASES))
def test_where_it_was_done_already_nothing_is_done_again(
    language: str, old: str, new: str, ahead: str, becomes: str
) -> None:
    assert not [p for p in taught(old, new).predict(becomes) if p.confidence > 0.4]


def test_a_name_in_the_instruction_is_believed_before_any_example() -> None:
    repeats = Repeats()
    repeats.hint("user", "account")
    [prediction] = repeats.predict("    return user + f(user)")
    assert prediction.text == "    return account + f(account)"
    assert prediction.confidence > 0.8


def test_names_that_swap_do_not_run_into_each_other() -> None:
    repeats = Repeats()
    repeats.hint("left", "right")
    repeats.hint("right", "left")
    assert texts(repeats.predict("f(left, right)"))[0] == "f(right, left)"


def test_a_name_within_another_word_stays() -> None:
    repeats = Repeats()
    repeats.hint("user", "account")
    assert repeats.predict("superuser = abuser.users2go()") == []


def test_a_name_that_contains_the_old_one_is_not_renamed_again() -> None:
    repeats = Repeats()
    repeats.hint("name", "full_name")
    assert repeats.predict("return full_name") == []
    assert texts(repeats.predict("return name"))[0] == "return full_name"


def test_a_path_may_be_named() -> None:
    repeats = Repeats()
    repeats.hint("os.path", "pathlib.Path")
    assert texts(repeats.predict("x = os.path.join(my.os.path)")) == ["x = pathlib.Path.join(my.pathlib.Path)"]


def test_indentation_is_the_lines_own() -> None:
    repeats = taught("        if x == None:", "    if x is None:")
    assert "\t\twhile y is None:" in texts(repeats.predict("\t\twhile y == None:"))


def test_several_changes_of_one_line_are_predicted_together() -> None:
    repeats = taught("load(path)", "load(file_path)")
    repeats.learn(["x = fetch(1)"], ["x = fetch_all(1)"])
    assert texts(repeats.predict("fetch(path)"))[0] == "fetch_all(file_path)"


def test_a_rename_reaches_into_the_holes_of_another_change() -> None:
    repeats = taught("foo(x)", "foo(x, timeout=3)")
    repeats.hint("user", "account")
    assert "y = foo(account, timeout=3)" in texts(repeats.predict("y = foo(user)"))


def test_success_strengthens_and_one_failure_weakens_more() -> None:
    repeats = taught("count = 1", "counter = 1")

    def confidence() -> float:
        return repeats.predict("return count")[0].confidence

    first = confidence()
    repeats.confirm(repeats.predict("return count")[0].rule, used=True)
    stronger = confidence()
    repeats.confirm(repeats.predict("return count")[0].rule, used=False)
    assert confidence() < first < stronger


def test_what_keeps_failing_is_given_up_until_it_is_seen_again() -> None:
    repeats = taught("count = 1", "counter = 1")
    for _ in range(3):
        for prediction in repeats.predict("return count"):
            repeats.confirm(prediction.rule, used=False)
    assert repeats.predict("return count") == []
    for _ in range(4):
        repeats.learn(["count = 2"], ["counter = 2"])
    assert texts(repeats.predict("return count")) == ["return counter"]


def test_a_confirmed_place_that_comes_back_as_a_hunk_counts_once() -> None:
    confirmed, seen = taught("count = 1", "counter = 1"), taught("count = 1", "counter = 1")
    confirmed.confirm(confirmed.predict("f(count)")[0].rule, used=True)
    for repeats in (confirmed, seen):
        repeats.learn(["f(count)"], ["f(counter)"])
    assert confirmed.predict("count") == seen.predict("count")


def test_of_two_meanings_the_latest_is_believed() -> None:
    repeats = taught("count = 1", "counter = 1")
    once = repeats.predict("count")[0].confidence
    repeats.learn(["count = 1"], ["counted = 1"])
    first = repeats.predict("count")[0]
    assert first.text == "counted"
    assert first.confidence < once


def test_a_hunk_of_several_lines_teaches_each_of_them() -> None:
    repeats = Repeats()
    repeats.learn(
        ["a = load(path)", "b = 1", "self.assertTrue(a)"],
        ["a = read(path)", "b = 1", "c = 3", "assert a"],
    )
    assert texts(repeats.predict("load(x)")) == ["read(x)"]
    assert texts(repeats.predict("self.assertTrue(x.y)")) == ["assert x.y"]


def test_a_deleted_call_is_deleted_again() -> None:
    repeats = Repeats()
    repeats.learn(['    console.log("a");'], [])
    [block] = repeats.predict_block(["  console.log(b, c);", "x()"])
    assert (block.consumed, block.lines) == (1, ())
    assert repeats.predict_block(["console.warn(b);"]) == []


def test_lines_that_became_one_become_one_again() -> None:
    repeats = Repeats()
    repeats.learn(["if a:", "    return b"], ["return b if a else None"])
    blocks = repeats.predict_block(["  if x.y:", "      return z", "q"])
    assert (2, ("  return z if x.y else None",)) in [(block.consumed, block.lines) for block in blocks]


def test_a_line_comes_in_after_each_like_the_first() -> None:
    repeats = Repeats()
    repeats.learn([], ["            log(Red)"], before="        case Red:", after="            return 1")
    blocks = repeats.predict_block(["        return 2"], before="    case Blue:")
    assert (0, ("        log(Blue)",)) in [(block.consumed, block.lines) for block in blocks]


def test_a_line_comes_in_before_each_like_the_first_and_only_once() -> None:
    repeats = Repeats()
    repeats.learn([], ["#[derive(Debug)]"], after="pub struct Foo {")
    [block] = repeats.predict_block(["    pub struct Bar {"])
    assert (block.consumed, block.lines) == (0, ("    #[derive(Debug)]",))
    assert repeats.predict_block(["    pub struct Bar {"], before="    #[derive(Debug)]") == []
    assert repeats.predict_block(["    pub enum Bar {"]) == []


def test_blocks_are_confirmed_like_lines() -> None:
    repeats = Repeats()
    repeats.learn(["import foo"], [])
    [block] = repeats.predict_block(["import foo"])
    repeats.confirm(block.rule, used=True)
    assert repeats.predict_block(["import foo"])[0].confidence > block.confidence


def test_only_so_many_rules_are_kept_and_the_believed_ones_stay() -> None:
    repeats = Repeats()
    repeats.hint("user", "account")
    for at in range(200):
        repeats.learn([f"alpha{at}x()"], [f"omega{at}y()"])
    assert texts(repeats.predict("user")) == ["account"]
    assert sum(bool(repeats.predict(f"alpha{at}x()")) for at in range(200)) < 64


HOSTILE = st.text(alphabet="ab(,)[]{}'\"` =.;%sfoo_", max_size=60)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(HOSTILE, HOSTILE), max_size=6), st.lists(HOSTILE, max_size=4))
def test_any_hunks_may_be_learnt_and_any_line_asked_about(pairs: list[tuple[str, str]], ahead: list[str]) -> None:
    repeats = Repeats()
    repeats.learn([old for old, _ in pairs], [new for _, new in pairs])
    for old, new in pairs:
        repeats.learn([old], [new], before=new, after=old)
        repeats.learn([], [new], before=old, after=new)
        repeats.learn([old, new], [new])
    for line in [*ahead, *(old for old, _ in pairs)]:
        predictions = repeats.predict(line)
        assert len(predictions) <= 3
        assert all(0 < prediction.confidence < 1 and prediction.text != line for prediction in predictions)
        assert [p.confidence for p in predictions] == sorted((p.confidence for p in predictions), reverse=True)
        assert sum(prediction.confidence for prediction in predictions) <= 1
        assert len(set(texts(predictions))) == len(predictions)
        assert repeats.predict(line) == predictions
        blocks = repeats.predict_block([line, *ahead], before=line)
        assert all(0 <= block.consumed <= 1 + len(ahead) for block in blocks)
        for prediction in predictions:
            repeats.confirm(prediction.rule, used=len(line) % 2 == 0)


@pytest.mark.parametrize("line", ["(" * 400, "foo(" * 100, "'" * 399, "a, " * 133, "foo(foo[" * 50, "x" * 100_000, ""])
def test_a_hostile_line_is_answered(line: str) -> None:
    repeats = taught("foo(x, 'a')", "foo(x, 'a', y)")
    repeats.learn(["a.foo(b)"], ["foo(a, b)"])
    assert len(repeats.predict(line)) <= 3
    repeats.learn([line], [line[: len(line) // 2] + "x, y)"])
