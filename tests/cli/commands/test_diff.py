"""`tao diff`: where two runs part."""

from typing import Any

from tests.shell import Shell, call


def run(tao: Shell, task: str, *script: Any, options: tuple[str, ...] = ()) -> str:
    return str(tao("run", task, "--model", tao.script(*script), "--json", *options).events[0]["run_id"])


def test_runs_of_the_same_decisions_are_the_same(tao: Shell) -> None:
    script = (call("calculator", expression="6*7"), "42")
    a, b = run(tao, "x", *script), run(tao, "x", *script, options=("--max-steps", "9"))
    same = tao("diff", a, b, code=0).out
    assert '  1 = calculator {"expression": "6*7"}' in same
    assert "the same in all 2 steps" in same
    assert "not compared: limits is" in same
    told = tao("diff", a, b, "--json", code=0).events[0]
    assert (told["same"], told["first"], told["a"]) == (True, None, a)


def test_the_first_divergence_is_shown_with_both_sides(tao: Shell) -> None:
    a = run(tao, "x", call("calculator", expression="6*7"), "42")
    b = run(tao, "x", call("calculator", expression="6*8"), "48", options=())
    out = tao("diff", a, b, code=1).out
    assert "They first differ in step 1: arguments of calculator" in out
    assert '  - a: {"expression": "6*7"}\n  + b: {"expression": "6*8"}' in out
    assert "48" not in out.partition("They first differ")[2]
    assert "+ b: 48" in tao("diff", a, b, "--all", code=1).out
    first = tao("diff", a, b, "--json", code=1).events[0]["first"]
    assert (first["step"], first["part"], first["b"]) == (1, "decision", {"expression": "6*8"})


def test_long_texts_are_shown_as_a_unified_diff(tao: Shell) -> None:
    text = "\n".join(f"line {n}" for n in range(40))
    a, b = run(tao, "x", text), run(tao, "x", text.replace("line 20", "LINE 20"))
    out = tao("diff", a, b, code=1).out
    assert "@@" in out
    told = tao("diff", run(tao, text, "x"), run(tao, text.replace("line 20", "LINE 20"), "x"), code=1).out
    assert "They first differ before step 1: task" in told
    assert "\n  -line 20\n  +LINE 20\n" in told
    assert "line 30" not in told.partition("They first")[2]


def test_a_step_that_only_one_has_and_the_end_are_told(tao: Shell) -> None:
    script = (call("calculator", expression="6*7"), "42")
    options = ("--max-steps", "1", "--no-closing-turn")
    a, b = run(tao, "x", *script), run(tao, "x", script[0], options=options)
    assert "They first differ in step 2: only a has it" in tao("diff", a, b, code=1).out
    c = run(tao, "x", script[0], "soon", options=options[:2])
    assert "They first differ in how they end" in tao("diff", b, c, code=1).out


def test_only_decisions_or_thoughts_too(tao: Shell) -> None:
    a, b = run(tao, "x", call("time_now")), run(tao, "y", {**call("time_now"), "text": "Why?"})
    assert "before step 1: task" in tao("diff", a, b, code=1).out
    tao("diff", a, b, "--decisions", code=0)
    assert "in step 1: thought" in tao("diff", a, b, "--decisions", "--thoughts", code=1).out


def test_a_run_that_is_not_there_is_a_usage_error(tao: Shell) -> None:
    a = run(tao, "x", "y")
    assert "no run 'nothing'" in tao("diff", a, "nothing", code=2).one_line


def test_steps_are_compared_by_what_they_did_and_figures_by_run(tao: Shell) -> None:
    one, two = call("calculator", expression="6*7"), call("calculator", expression="1+1")
    a, b = run(tao, "x", one, "42"), run(tao, "x", two, one, "42")
    out = tao("diff", a, b, code=1).out
    assert "They first differ in step 1: only b has it" in out
    assert "    ≠ a: –\n  1 · b: calculator" in out
    assert '  1 = calculator {"expression": "6*7"}\n  2 = answer 42' in out
    assert "a: 2 steps · 1 call ·" in out
    assert "b: 3 (+1) steps · 2 (+1) calls" in out


def test_more_than_two_runs_are_each_compared_with_the_first(tao: Shell) -> None:
    one, two = call("calculator", expression="6*7"), call("calculator", expression="1+1")
    a, b, c = run(tao, "x", one, "42"), run(tao, "x", two, one, "42"), run(tao, "x", one, "43")
    out = tao("diff", a, b, c, code=1).out
    assert "a, b: They first differ in step 1: only b has it" in out
    assert "a, c: They first differ in step 2: answer" in out
    told = tao("diff", a, b, c, "--json", code=1).events[0]
    assert [figures["run_id"] for figures in told["runs"]] == [a, b, c]
    assert [difference["run"] for difference in told["differences"]] == [1, 2]


def test_one_run_cannot_be_compared(tao: Shell) -> None:
    assert "Give 2 to 8 runs." in tao("diff", "last", code=2).one_line
