"""`tao chat`: a conversation of lines."""

from tests.pictures import png
from tests.shell import Shell, call


def test_each_line_is_a_run_that_sees_those_before_it(tao: Shell) -> None:
    tao("chat", "--model", tao.script("I see."), stdin="I am Ann.\n\nWho am I?\n", code=0)
    started = tao("show", "last", "--json", code=0).events[0]
    assert started["task"] == "Who am I?"
    assert [message["content"] for message in started["history"]] == ["I am Ann.", "I see."]
    tao("chat", "--model", tao.script("I see."), "--after", "last", stdin="//etc is what?\n/quit\nNot this.\n", code=0)
    started = tao("show", "last", "--json", code=0).events[0]
    assert (started["task"], len(started["history"])) == ("/etc is what?", 4)


def test_a_session_is_found_again_by_its_name(tao: Shell) -> None:
    for task in ("I am Ann.", "Who am I?"):
        tao("chat", "--model", tao.script("I see."), "--session", "garden", stdin=f"{task}\n", code=0)
    started = tao("show", "last", "--json", code=0).events[0]
    assert (len(started["history"]), started["labels"]["session"]) == (2, "garden")
    tao("chat", "--session", "garden", "--after", "last", code=2)


def test_a_picture_belongs_to_the_next_line(tao: Shell) -> None:
    (tao.folder / "a picture.png").write_bytes(png())
    tao("chat", "--model", tao.script("I see."), stdin="/attach a picture.png\nWhat is it?\nAnd now?\n", code=0)
    started = tao("show", "last", "--json", code=0).events[0]
    assert not started.get("images")
    assert len(started["history"][0]["images"]) == 1


def test_what_is_no_command_and_no_picture_is_said(tao: Shell) -> None:
    assert "/attach PATH" in tao("chat", "--model", "offline", stdin="/imag a.png\n", code=2).one_line
    assert "none.png cannot be read" in tao("chat", "--model", "offline", stdin="/image none.png\n", code=2).one_line
    assert not (tao.folder / "runs.db").exists()


def test_a_run_that_waits_ends_a_conversation_from_a_pipe(tao: Shell) -> None:
    model = tao.script(call("write_file", path="a.txt", content="a"), "Done.")
    ended = tao("chat", "--model", model, "--workspace", ".", stdin="Write a.\nAnd b.\n", code=8)
    assert "Decide: tao approvals" in ended.out
    assert len(tao("runs", code=0).out.splitlines()) == 1
